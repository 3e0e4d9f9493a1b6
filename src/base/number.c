/* One parser for digits; sizes and durations add a table of units. */
#include "base/number.h"

#include "base/attr.h"

/* A unit's name and how many of the base unit it stands for. */
struct unit {
    struct slice name;
    uint64_t factor;
};

bool number_parse_u64(struct slice text, uint64_t max, bool zeros, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (text.len == 0 || (!zeros && text.len > 1 && text.ptr[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned char)text.ptr[i] - (unsigned)'0';

        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    if (value > max) {
        return false;
    }
    *ret_value = value;
    return true;
}

/* Digits, then one of the units, and nothing else; false when the product does not fit. */
static bool parse_with_unit(struct slice text, const struct unit *units, size_t unit_count,
                            uint64_t *ret_value)
{
    size_t digits = 0;
    struct slice name;
    uint64_t value;

    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9') {
        digits++;
    }
    if (!number_parse_u64((struct slice){text.ptr, digits}, UINT64_MAX, false, &value)) {
        return false;
    }
    name = (struct slice){text.ptr + digits, text.len - digits};
    for (size_t i = 0; i < unit_count; i++) {
        if (slice_equal(name, units[i].name)) {
            if (__builtin_mul_overflow(value, units[i].factor, &value)) {
                return false;
            }
            *ret_value = value;
            return true;
        }
    }
    return false;
}

bool number_parse_size(struct slice text, uint64_t *ret_bytes)
{
    const struct unit units[] = {
        {SLICE(""), 1},
        {SLICE("KiB"), UINT64_C(1) << 10},
        {SLICE("MiB"), UINT64_C(1) << 20},
        {SLICE("GiB"), UINT64_C(1) << 30},
    };

    return parse_with_unit(text, units, ARRAY_COUNT(units), ret_bytes);
}

bool number_parse_duration(struct slice text, uint64_t *ret_ms)
{
    const struct unit units[] = {
        {SLICE("ms"), 1},
        {SLICE("s"), 1000},
        {SLICE("m"), UINT64_C(60) * 1000},
        {SLICE("h"), UINT64_C(60) * 60 * 1000},
    };

    return parse_with_unit(text, units, ARRAY_COUNT(units), ret_ms);
}
