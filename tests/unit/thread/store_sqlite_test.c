/* The list of store_cases.h over SQLite, and what is SQLite's own: files, locks. */
#include "thread/store_sqlite.c"

#include <sys/wait.h>

#include "unit/thread/store_cases.h"
#include "unit/thread/store_sqlite_fixture.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASES,
    };
    return UNIT_RUN(tests);
}
