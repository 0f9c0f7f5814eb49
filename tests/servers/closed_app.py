"""One API, made with the framework that is named: each operation says which one ran. Frameworks decode `%2F` before they route."""

import socket
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

ROUTES = [
    ("GET", "/users/{id}", "get_user"),
    ("GET", "/users/{id}/keys", "get_keys"),
    ("GET", "/reports/payroll", "get_payroll"),
    ("GET", "/reports/{id}", "get_report"),
    ("POST", "/boxes/{id}", "start_box"),
    ("POST", "/boxes/{id}/kill", "kill_box"),
    ("GET", "/projects/{id}", "get_project"),
    ("GET", "/files/{id}", "get_file"),
]


def with_fastapi():
    from fastapi import FastAPI

    app = FastAPI()
    for method, path, name in ROUTES:
        path = path.replace("{id}", "{id:path}") if name in ("get_project", "get_file") else path
        app.add_api_route(path, (lambda name: lambda: {"ran": name})(name), methods=[method])
    return app


def with_flask():
    from flask import Flask

    app = Flask(__name__)
    for method, path, name in ROUTES:
        path = path.replace("{id}", "<path:id>" if name in ("get_project", "get_file") else "<id>")
        app.add_url_rule(path, name, (lambda name: lambda id="": {"ran": name})(name), methods=[method])
    return app


def with_django(rest_framework=False):
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.http import JsonResponse
    from django.urls import path as django_path

    installed = ["rest_framework"] if rest_framework else []
    renderers = ["rest_framework.renderers.JSONRenderer"]
    framework = {"DEFAULT_RENDERER_CLASSES": renderers, "UNAUTHENTICATED_USER": None, "DEFAULT_AUTHENTICATION_CLASSES": []}
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], INSTALLED_APPS=installed, REST_FRAMEWORK=framework)
    django.setup()

    def plain(name):
        return lambda request, id="", format=None: JsonResponse({"ran": name})

    def of_rest_framework(name, method):
        from rest_framework.decorators import api_view
        from rest_framework.response import Response

        return api_view([method])(lambda request, id="", format=None: Response({"ran": name}))

    urls = []
    for method, path, name in ROUTES:
        path = path.lstrip("/").replace("{id}", "<path:id>" if name in ("get_project", "get_file") else "<str:id>")
        urls.append(django_path(path, of_rest_framework(name, method) if rest_framework else plain(name)))
    if rest_framework:
        from rest_framework.urlpatterns import format_suffix_patterns

        urls = format_suffix_patterns(urls)
    globals()["urlpatterns"] = urls
    return get_wsgi_application()


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


if __name__ == "__main__":
    if sys.argv[1] == "fastapi":
        import uvicorn

        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(listener.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(with_fastapi(), log_level="warning")).run(sockets=[listener])
    else:
        apps = {"flask": with_flask, "django": with_django, "rest_framework": lambda: with_django(rest_framework=True)}
        server = make_server("127.0.0.1", 0, apps[sys.argv[1]](), handler_class=Quiet)
        print(server.server_port, flush=True)
        server.serve_forever()
