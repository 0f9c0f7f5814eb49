"""The Python client, in the era that the job names.

Argument: the job as JSON (see check.py). Prints what the client saw as JSON.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters


def plain(model):
    # exclude_unset: a field that was not on the wire must not look as if it had been.
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def main(job):
    server = job["url"] if "url" in job else StdioServerParameters(command=job["command"][0], args=job["command"][1:])
    # `auto` is what a host would use: it must find the modern era by probing, without falling back.
    mode = "auto" if job["era"] == "modern" else "legacy"
    results = []
    async with Client(server, mode=mode, read_timeout_seconds=20) as client:
        protocol = client.protocol_version
        info = client.server_info
        listed = await client.list_tools()
        for name, arguments in job["calls"]:
            try:
                results.append({"result": plain(await client.call_tool(name, arguments))})
            except MCPError as error:
                results.append({"error": {"code": error.code, "message": error.message}})
            except Exception as error:  # the client's own checks, e.g. of structuredContent against outputSchema
                results.append({"error": {"code": None, "message": f"{type(error).__name__}: {error}"}})
    print(json.dumps({"protocol": protocol, "server": info and plain(info), "list": plain(listed), "results": results}))


asyncio.run(main(json.loads(sys.argv[1])))
