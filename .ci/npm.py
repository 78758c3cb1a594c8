"""What the scripts have in common that use packages of npm: running commands, and installing. Standard library only."""
import subprocess
import sys


def run(*command, shown=False, **more):
    """Runs a command; returns what it prints, unless that is shown as it comes. Ends the script if the command fails."""
    capture = {} if shown else {"capture_output": True, "text": True}
    done = subprocess.run([str(part) for part in command], check=False, **capture, **more)
    if done.returncode != 0:
        said = "" if shown else f":\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        sys.exit(f"{' '.join(map(str, command))} failed ({done.returncode}){said}")
    return done.stdout


def install(work, packages, package='{"private": true}'):
    """Installs packages into a folder, once for a list of them."""
    work.mkdir(parents=True, exist_ok=True)
    done = work / "installed"
    if not done.exists() or done.read_text() != str(packages):
        (work / "package.json").write_text(package)
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "--save-exact", *packages, cwd=work)
        done.write_text(str(packages))
