"""The guide to deploy/ names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
README = (DEPLOY / "README.md").read_text(encoding="utf-8")


def test_links_lead_somewhere() -> None:
    """Every link to a file or a heading has its file or heading."""
    headings = {
        "#" + re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    }
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", README) if "://" not in target]

    files = {target: target.partition("#")[0] for target in targets}

    assert targets
    assert [] == [
        each for each in targets if not (each in headings or (files[each] and (DEPLOY / files[each]).exists()))
    ]


def test_commands_name_files_that_are_there() -> None:
    """Every file of the repository that a command names exists."""
    named = [word for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for word in block.split()]
    files = [word for word in named if word.startswith("deploy/")]

    assert files
    assert [] == [each for each in files if not (DEPLOY.parent / each).exists()]


def test_every_alert_is_explained() -> None:
    """The table of alerts has each alert of the rules, and no other."""
    groups = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text(encoding="utf-8"))["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    table = README.partition("| alert |")[2].partition("\n\n")[0]

    assert alerts == set(re.findall(r"`([A-Z]\w+)`", table))
