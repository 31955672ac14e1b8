"""Programs for an interpreter that has nothing of Python that Windows lacks.

The modules of the standard library that need it themselves, where they run on Linux, are loaded before. `msvcrt`, which
Windows has instead of `fcntl`, locks bytes as it does there, by locks of this system.
"""

from __future__ import annotations

LACKING = '''
import asyncio, fcntl, multiprocessing, os, shutil, signal, subprocess, sys, tempfile, threading, time, types

def locking(file, mode, size):
    fcntl.lockf(file, fcntl.LOCK_EX if mode == msvcrt.LK_LOCK else fcntl.LOCK_EX | fcntl.LOCK_NB, size, 0, os.SEEK_CUR)

msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_LOCK, msvcrt.LK_NBLCK, msvcrt.locking = 1, 2, locking
sys.modules["msvcrt"] = msvcrt
os.O_TEMPORARY = 0
shutil._use_fd_functions = False  # it decided for Linux when it was loaded
for name in "fcntl resource pwd grp termios tty pty syslog posix".split():
    sys.modules[name] = None
gone = {
    os: """fork forkpty register_at_fork posix_spawn posix_spawnp killpg getpgid getpgrp setpgid setsid geteuid getuid
        getegid getgid getgroups chown fchmod fchown mkfifo pread preadv pwrite pwritev readv writev sync fdatasync
        sysconf sysconf_names nice wait3 wait4 waitid sched_getaffinity sched_yield
        O_NONBLOCK O_NOFOLLOW O_CLOEXEC O_DIRECTORY O_SYNC O_DSYNC""",
    signal: """SIGHUP SIGKILL SIGALRM SIGUSR1 SIGUSR2 SIGPIPE SIGQUIT SIGCHLD alarm setitimer getitimer pause
        pthread_kill pthread_sigmask sigwait SIG_BLOCK SIG_UNBLOCK ITIMER_REAL""",
    time: "clock_gettime clock_gettime_ns clock_getres CLOCK_MONOTONIC CLOCK_REALTIME",
}
for module, names in gone.items():
    for each in names.split():
        delattr(module, each)
del asyncio.SelectorEventLoop.add_signal_handler, asyncio.SelectorEventLoop.remove_signal_handler
'''
