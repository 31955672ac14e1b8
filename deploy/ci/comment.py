"""Writes a file as a comment on a pull request of GitHub or a merge request of GitLab, and replaces the one before.

Usage, in a job: python comment.py FILE. The first line of the file identifies the comment. Variables: COMMENT_TOKEN,
and on GitHub NUMBER, the number of the pull request; both systems set the others. Needs only the standard library.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

LONGEST: Final = 65_000
"""Characters; GitHub refuses a comment of more than 65,536."""
_CUT: Final = "\n\n*Cut here: the rest is in the job's summary and artifacts.*\n"
_PAGE: Final = 100
_TIMEOUT_S: Final = 30
_NOT_OURS: Final = {403, 404}
"""Answers about the comment of another author, or one that was deleted meanwhile."""


class Comments:
    """The comments of one request to merge."""

    def __init__(self, api: str, address: str, one: str, headers: dict[str, str], replaced_by: str) -> None:
        self._api: Final = api
        self._address: Final = address
        self._one: Final = one
        self._headers: Final = {"Content-Type": "application/json", "User-Agent": "spanscore", **headers}
        self._replaced_by: Final = replaced_by

    @classmethod
    def of_job(cls, env: dict[str, str]) -> Comments:
        """Return the comments of the pull or merge request of this job.

        Raises:
            KeyError: a variable is missing.
        """
        token = env["COMMENT_TOKEN"]
        if "CI_API_V4_URL" in env:
            project = f"{env['CI_API_V4_URL']}/projects/{env['CI_PROJECT_ID']}"
            address = f"{project}/merge_requests/{env['CI_MERGE_REQUEST_IID']}/notes"
            return cls(env["CI_API_V4_URL"], address, address, {"PRIVATE-TOKEN": token}, "PUT")
        issues = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}/issues"
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        address = f"{issues}/{env['NUMBER']}/comments"
        return cls(env["GITHUB_API_URL"], address, f"{issues}/comments", headers, "PATCH")

    def write(self, text: str) -> str:
        """Replace our comment that begins with the same line, or write the first; return what was done."""
        marker = text.partition("\n")[0]
        user = self._user()
        for comment in self._all():
            # GitHub names the author `user`, GitLab `author`; a deleted one is null.
            author = comment.get("user") or comment.get("author") or {}
            is_ours = author.get("type") == "Bot" if user is None else author.get("id") == user
            if is_ours and str(comment["body"]).startswith(marker):
                try:
                    self._ask(self._replaced_by, f"{self._one}/{comment['id']}", text)
                except urllib.error.HTTPError as error:
                    if error.code not in _NOT_OURS:
                        raise
                else:
                    return f"comment {comment['id']} was replaced"
        return f"comment {self._ask('POST', self._address, text)['id']} was written"

    def _user(self) -> int | None:
        """Return the id of the token's user; None if there is none, as for the token of a job of GitHub."""
        try:
            return int(self._ask("GET", f"{self._api}/user")["id"])
        except urllib.error.HTTPError:
            return None

    def _all(self) -> Iterator[dict[str, Any]]:
        number = 1
        while True:
            page = self._ask("GET", f"{self._address}?per_page={_PAGE}&page={number}")
            yield from page
            if len(page) < _PAGE:
                return
            number += 1

    def _ask(self, method: str, address: str, body: str | None = None) -> Any:
        data = None if body is None else json.dumps({"body": body}).encode()
        request = urllib.request.Request(address, data, self._headers, method=method)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            return json.load(answer)


def main(arguments: list[str], env: dict[str, str]) -> int:
    """Write the comment; return an exit status."""
    if len(arguments) != 1:
        print("usage: comment.py FILE", file=sys.stderr)
        return 2
    try:
        comments = Comments.of_job(env)
    except KeyError as error:
        print(
            f"comment.py: the variable {error.args[0]} is not set: this runs in a job of GitHub or GitLab "
            "(there, protected variables are missing on branches that are not protected)",
            file=sys.stderr,
        )
        return 2
    text = Path(arguments[0]).read_text(encoding="utf-8")
    if len(text) > LONGEST:
        text = text[: LONGEST - len(_CUT)].rpartition("\n")[0] + _CUT
    try:
        print(comments.write(text))
    except urllib.error.HTTPError as error:
        said = error.read(1000).decode("utf-8", "replace")
        print(f"comment.py: {error.url} answered {error.code}: {said}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"comment.py: the API cannot be reached: {error}", file=sys.stderr)
        return 1
    except (HTTPException, ValueError, LookupError, TypeError, AttributeError):
        print("comment.py: what answered is no API of comments, or another one", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))
