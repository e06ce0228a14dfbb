/* The floor of an exec: posix_spawn of a command, its output read to the end, its exit awaited. Nothing else.
 *
 *   spawn COMMAND [ARG...]      reads one line of standard input for each measurement, and answers with one:
 *     one                       one run: the milliseconds it took
 *     rate CALLERS SECONDS      runs per second with so many at a time
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct run {
  pid_t pid;
  int out;
};

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static struct run start(char **argv) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) fail("pipe2");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  struct run run;
  errno = posix_spawnp(&run.pid, argv[0], &actions, NULL, argv, environ);
  if (errno != 0) fail("posix_spawn");
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  run.out = ends[0];
  return run;
}

/* What a measured command prints is not looked at here; that it ended well is. */
static void finish(struct run run) {
  char text[4096];
  while (read(run.out, text, sizeof text) > 0) {
  }
  close(run.out);
  int status;
  if (waitpid(run.pid, &status, 0) != run.pid) fail("waitpid");
  if (status != 0) {
    fprintf(stderr, "the command ended with status %d\n", status);
    exit(1);
  }
}

static double rate(char **argv, int callers, double seconds) {
  struct run runs[callers];
  struct pollfd polled[callers];
  double begun = now_ms(), until = begun + seconds * 1e3;
  long done = 0;
  int open = callers;
  for (int i = 0; i < callers; i++) {
    runs[i] = start(argv);
    polled[i] = (struct pollfd){.fd = runs[i].out, .events = POLLIN};
  }
  while (open > 0) {
    if (poll(polled, callers, -1) < 0) fail("poll");
    for (int i = 0; i < callers; i++) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      finish(runs[i]);
      done++;
      if (now_ms() < until) {
        runs[i] = start(argv);
        polled[i].fd = runs[i].out;
      } else {
        polled[i].fd = -1;
        open--;
      }
    }
  }
  return done * 1e3 / (now_ms() - begun);
}

int main(int argc, char **argv) {
  char line[256];
  int callers;
  double seconds;
  if (argc < 2) return 2;
  while (fgets(line, sizeof line, stdin) != NULL) {
    double answer;
    if (sscanf(line, "rate %d %lf", &callers, &seconds) == 2) {
      answer = rate(argv + 1, callers, seconds);
    } else {
      double before = now_ms();
      finish(start(argv + 1));
      answer = now_ms() - before;
    }
    printf("%.6f\n", answer);
    fflush(stdout);
  }
  return 0;
}
