#!/usr/bin/env python3
"""Tests actors of kind `tool` with the protocol's reference server, which is installed from npm into target/everything."""
import os
import pathlib
import subprocess
import sys

import npm

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["@modelcontextprotocol/server-everything@2026.8.31"]

work = ROOT / "target" / "everything"
npm.install(work, PACKAGES)
command = ["cargo", "test", "-p", "charter-models", "--features", "tools", "--test", "it", "--", "tool", "everything"]
sys.exit(subprocess.run(command, cwd=ROOT, env={**os.environ, "MCP_EVERYTHING": str(work)}, check=False).returncode)
