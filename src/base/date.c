/* The calendar is computed in years that begin on the first of March: the leap day is then the last
 * of its year, and a month's first day is a linear function of the month's number. */
#include "base/date.h"

#define DAY_SECONDS     86400
#define CENTURIES4_DAYS 146097 /* 400 years; the calendar repeats after them */
#define MARCH_0000_DAYS 719468 /* from 0000-03-01 to 1970-01-01 */
#define FIELD_MISSING   (-1)

struct moment {
    int year;   /* 1970 to 9999 */
    int month;  /* 1 to 12 */
    int day;    /* 1 to 31 */
    int hour;   /* 0 to 23 */
    int minute; /* 0 to 59 */
    int second; /* 0 to 60 when parsed */
    int ms;     /* 0 to 999 */
};

/* Days before the month in a year from March (0) to February (11). */
static int month_start(int month_from_march)
{
    return (153 * month_from_march + 2) / 5;
}

static int64_t days_of_date(int year, int month, int day)
{
    int march_year = month > 2 ? year : year - 1;
    int march_month = (month + 9) % 12;
    int64_t days = (int64_t)march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400;

    return days + month_start(march_month) + day - 1 - MARCH_0000_DAYS;
}

static void date_of_days(int64_t days, struct moment *m)
{
    int64_t since_march = days + MARCH_0000_DAYS;
    int cycle = (int)(since_march / CENTURIES4_DAYS);
    int day = (int)(since_march % CENTURIES4_DAYS);
    /* Without the leap days before it, every year has 365 days. */
    int year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int march_month;

    day -= 365 * year + year / 4 - year / 100;
    march_month = (5 * day + 2) / 153;
    m->day = day - month_start(march_month) + 1;
    m->month = (march_month + 2) % 12 + 1;
    m->year = cycle * 400 + year + (m->month <= 2);
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

/* Takes `count` digits off the front of the text: their value, or FIELD_MISSING. */
static int take_digits(struct slice *text, size_t count)
{
    int value = 0;

    if (text->len < count) {
        return FIELD_MISSING;
    }
    for (size_t i = 0; i < count; i++) {
        char c = text->ptr[i];

        if (c < '0' || c > '9') {
            return FIELD_MISSING;
        }
        value = value * 10 + (c - '0');
    }
    text->ptr += count;
    text->len -= count;
    return value;
}

/* Takes one character off the front when it is one of `accepted`. */
static bool take_one_of(struct slice *text, const char *accepted, char *ret_c)
{
    if (text->len == 0 || text->ptr[0] == '\0' || strchr(accepted, text->ptr[0]) == NULL) {
        return false;
    }
    *ret_c = text->ptr[0];
    text->ptr++;
    text->len--;
    return true;
}

/* The fraction digits after the point: at least one, the first three count. */
static bool take_fraction(struct slice *text, int *ret_ms)
{
    int ms = 0;
    int weight = 100;
    int digit = take_digits(text, 1);

    if (digit == FIELD_MISSING) {
        return false;
    }
    do {
        ms += digit * weight;
        weight /= 10;
        digit = take_digits(text, 1);
    } while (digit != FIELD_MISSING);
    *ret_ms = ms;
    return true;
}

/* "Z" or "+hh:mm": minutes east of UTC. Small letters are allowed by RFC 3339 section 5.6. */
static bool take_offset(struct slice *text, int *ret_minutes)
{
    char sign;
    char colon;
    int hours;
    int minutes;

    if (!take_one_of(text, "Zz+-", &sign)) {
        return false;
    }
    if (sign == 'Z' || sign == 'z') {
        *ret_minutes = 0;
        return true;
    }
    hours = take_digits(text, 2);
    if (hours == FIELD_MISSING || hours > 23 || !take_one_of(text, ":", &colon)) {
        return false;
    }
    minutes = take_digits(text, 2);
    if (minutes == FIELD_MISSING || minutes > 59) {
        return false;
    }
    *ret_minutes = (sign == '-' ? -1 : 1) * (hours * 60 + minutes);
    return true;
}

/* "yyyy-mm-dd", a day that exists. */
static bool take_date(struct slice *text, struct moment *m)
{
    char dash;

    m->year = take_digits(text, 4);
    if (m->year < 1 || !take_one_of(text, "-", &dash)) {
        return false;
    }
    m->month = take_digits(text, 2);
    if (m->month < 1 || m->month > 12 || !take_one_of(text, "-", &dash)) {
        return false;
    }
    m->day = take_digits(text, 2);
    return m->day >= 1 && m->day <= month_days(m->year, m->month);
}

/* "hh:mm:ss" with an optional fraction. */
static bool take_time(struct slice *text, struct moment *m)
{
    char mark;

    m->hour = take_digits(text, 2);
    if (m->hour == FIELD_MISSING || m->hour > 23 || !take_one_of(text, ":", &mark)) {
        return false;
    }
    m->minute = take_digits(text, 2);
    if (m->minute == FIELD_MISSING || m->minute > 59 || !take_one_of(text, ":", &mark)) {
        return false;
    }
    m->second = take_digits(text, 2);
    if (m->second == FIELD_MISSING || m->second > 60) {
        return false;
    }
    m->ms = 0;
    return !take_one_of(text, ".", &mark) || take_fraction(text, &m->ms);
}

bool date_parse_rfc3339(struct slice text, int64_t *ret_ms)
{
    struct moment m;
    char mark;
    int offset_minutes;
    int64_t seconds;

    if (!take_date(&text, &m) || !take_one_of(&text, "Tt", &mark) || !take_time(&text, &m) ||
        !take_offset(&text, &offset_minutes) || text.len > 0) {
        return false;
    }
    seconds = days_of_date(m.year, m.month, m.day) * DAY_SECONDS + m.hour * 3600 +
              (m.minute - offset_minutes) * 60 + m.second;
    /* Leap seconds end a day of UTC, whatever the local time is then. */
    if (m.second == 60 && seconds % DAY_SECONDS != 0) {
        return false;
    }
    if (seconds < 0 || seconds > DATE_MS_MAX / 1000) {
        return false;
    }
    *ret_ms = seconds * 1000 + m.ms;
    return true;
}

/* Splits `ms`, brought into bounds; returns the days since 1970. */
static int64_t split(int64_t ms, struct moment *ret_m)
{
    int64_t bounded = ms < 0 ? 0 : ms > DATE_MS_MAX ? DATE_MS_MAX : ms;
    int64_t days = bounded / 1000 / DAY_SECONDS;
    int second = (int)(bounded / 1000 % DAY_SECONDS);

    date_of_days(days, ret_m);
    ret_m->hour = second / 3600;
    ret_m->minute = second / 60 % 60;
    ret_m->second = second % 60;
    ret_m->ms = (int)(bounded % 1000);
    return days;
}

/* Writes `value` with `count` digits and then `end`; returns where the next one goes. */
static char *put(char *out, int value, int count, char end)
{
    for (int i = count - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    out[count] = end;
    return out + count + 1;
}

void date_format_rfc3339(char out[static DATE_RFC3339_BYTES], int64_t ms)
{
    struct moment m;
    char *at = out;

    (void)split(ms, &m); /* the day of the week is not shown */
    at = put(at, m.year, 4, '-');
    at = put(at, m.month, 2, '-');
    at = put(at, m.day, 2, 'T');
    at = put(at, m.hour, 2, ':');
    at = put(at, m.minute, 2, ':');
    at = put(at, m.second, 2, '.');
    at = put(at, m.ms, 3, 'Z');
    *at = '\0';
}

void date_format_http(char out[static DATE_HTTP_BYTES], int64_t ms)
{
    static const char weekdays[] =
        "Thu, Fri, Sat, Sun, Mon, Tue, Wed, "; /* 1970 began on a Thursday */
    static const char months[] = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec ";
    struct moment m;
    int64_t days = split(ms, &m);
    char *at = out;

    memcpy(at, weekdays + 5 * (days % 7), 5);
    at = put(at + 5, m.day, 2, ' ');
    memcpy(at, months + 4 * (m.month - 1), 4);
    at = put(at + 4, m.year, 4, ' ');
    at = put(at, m.hour, 2, ':');
    at = put(at, m.minute, 2, ':');
    at = put(at, m.second, 2, ' ');
    memcpy(at, "GMT", 4);
}
