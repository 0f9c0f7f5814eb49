"""An API as people write it with FastAPI: every operation gives back what it received, as the framework read it."""

import enum
from datetime import date
from typing import Annotated

from fastapi import Body, Cookie, FastAPI, File, Form, Header, Path, Query, UploadFile
from pydantic import BaseModel, Field

app = FastAPI(title="Shop", version="1.0")


class Status(enum.StrEnum):
    new = "new"
    sold = "sold"


class Part(BaseModel):
    name: str
    weight: float | None = None


class Item(BaseModel):
    name: str
    price: float = Field(gt=0)
    big: int = 0
    parts: list[Part] = []
    labels: dict[str, str] = {}
    replaces: "Item | None" = None


@app.get("/items/{item_id}", operation_id="get_item")
def get_item(
    item_id: Annotated[str, Path()],
    tag: Annotated[list[str], Query()] = [],
    status: Status | None = None,
    since: date | None = None,
    page_size: Annotated[int, Query(alias="page-size", ge=1, le=100)] = 10,
    x_trace: Annotated[str | None, Header()] = None,
    session: Annotated[str | None, Cookie()] = None,
):
    return {
        "item_id": item_id,
        "tag": tag,
        "status": status,
        "since": since,
        "page_size": page_size,
        "x_trace": x_trace,
        "session": session,
    }


@app.post("/items", operation_id="create_item", status_code=201)
def create_item(item: Item):
    return item


@app.put("/items/{item_id}", operation_id="replace_item")
def replace_item(item_id: int, item: Item, note: Annotated[str, Body()]):
    return {"item_id": item_id, "item": item, "note": note}


@app.delete("/items/{item_id}", operation_id="delete_item", status_code=204)
def delete_item(item_id: int):
    return None


@app.post("/login", operation_id="login")
def login(name: Annotated[str, Form()], remember: Annotated[bool, Form()] = False):
    return {"name": name, "remember": remember}


@app.post("/files", operation_id="upload")
async def upload(file: UploadFile, more: Annotated[list[UploadFile], File()] = [], title: Annotated[str, Form()] = ""):
    content = await file.read()
    return {
        "filename": file.filename,
        "type": file.content_type,
        "hex": content.hex(),
        "more": [(one.filename, (await one.read()).hex()) for one in more],
        "title": title,
    }


if __name__ == "__main__":
    import socket

    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # Whoever reads the port may connect at once.
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
