"""Chat templates, rendered in a process of their own.

A template is a program in Jinja that comes with a model. The sandbox of transformers keeps it from files and from the
network, but not from running without end or from filling the memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import Any

from attnviz.errors import ModelError
from attnviz.text.display import visible

SECONDS = 20  # that a template may take; the process itself starts in 1 to 5
MEMORY = 2**31  # bytes of address space that the process may take
LONGEST = 2**20  # characters of the rendered text: far more than the positions of any model


def render_chat(tokenizer: Any, text: str, name: str) -> str:
    """Return a text in a tokenizer's chat template, as a message of the user that the model is to answer.

    The memory is limited where the system can do so (Linux), the time everywhere. `name` is that of the model.
    Raises ModelError: the template fails, takes too long, or needs too much memory.
    """
    arguments = {
        **tokenizer.special_tokens_map,
        "conversations": [[{"role": "user", "content": text}]],
        "chat_template": tokenizer.get_chat_template(),
        "add_generation_prompt": True,
    }
    # The process imports from the same folders as this one, and with -I from no other, such as the current folder.
    code = f"import sys; sys.path[:] = {sys.path}; from {__name__} import main; main()"
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-c", code],
            input=json.dumps(arguments, default=str).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
        answer = {"error": f"its process ended with status {process.returncode}"}
        if not process.returncode:
            answer = json.loads(process.stdout)
    except subprocess.TimeoutExpired:
        answer = {"error": f"it takes longer than {SECONDS} seconds"}
    if "error" in answer:
        raise ModelError(f"the chat template of {name} cannot be used: {visible(answer['error'])}")
    return answer["text"]


def main() -> None:
    """Render the template that standard input describes, and print the text or the error as JSON."""
    from transformers.utils.chat_template_utils import render_jinja_template

    # Windows has no such limits, and macOS refuses one below the address space that Python has already.
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        # The library returns one text for each conversation, and the places of the answers in it.
        rendered: Any = render_jinja_template(**json.load(sys.stdin.buffer))
        answer = {"text": rendered[0][0]}
        if len(answer["text"]) > LONGEST:
            answer = {"error": f"it makes a text of {len(answer['text']):,} characters"}
    except MemoryError:
        answer = {"error": "it needs too much memory"}
    except Exception as error:  # a template may raise any
        answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    sys.stdout.write(json.dumps(answer))
