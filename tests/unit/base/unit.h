/* What every unit test includes: cmocka with the headers it wants before itself. */
#ifndef ARBE_TESTS_UNIT_BASE_UNIT_H
#define ARBE_TESTS_UNIT_BASE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Runs a group named after the tests and returns what main returns. */
#define UNIT_RUN(tests) cmocka_run_group_tests(tests, NULL, NULL)

#endif
