/* Has signal handlers on the program's stack and on a stack of their own, which return or jump out. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static sigjmp_buf back;
static volatile int sink;
static char room[1 << 16];

void in_handler(void) {
    for (int i = 0; i < 10; i++) sink++;
}

void returns(int number) {
    (void)number;
    in_handler();
}

void jumps(int number) {
    (void)number;
    in_handler();
    siglongjmp(back, 1);
}

void after(void) {
    sink++;
}

void interrupted(int number) {
    raise(number);
    after();
}

void left(int number) {
    if (sigsetjmp(back, 1) == 0) raise(number);
    after();
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    if (sigaction(number, &action, NULL) != 0) exit(2);
}

int main(void) {
    stack_t own = {.ss_sp = room, .ss_size = sizeof room};
    if (sigaltstack(&own, NULL) != 0) return 2;
    handle(SIGUSR1, returns, 0);
    handle(SIGUSR2, returns, SA_ONSTACK);
    handle(SIGHUP, jumps, 0);
    handle(SIGALRM, jumps, SA_ONSTACK);
    for (int i = 0; i < 25; i++) {
        interrupted(SIGUSR1);
        interrupted(SIGUSR2);
        left(SIGHUP);
        left(SIGALRM);
    }
    return 0;
}
