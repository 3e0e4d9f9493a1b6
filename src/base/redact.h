/* Secrets in texts of others: a peer that got a secret may quote it, whole or cut. Pure. */
#ifndef ARBE_BASE_REDACT_H
#define ARBE_BASE_REDACT_H

#define REDACT_PART_BYTES  8u /* of a secret; fewer in a row are taken for chance */
#define REDACT_WHOLE_BYTES 4u /* a shorter one is no secret */

/* Puts "***" in the place of all that `text` has in common with `secret`: each part of it of
 * REDACT_PART_BYTES or more, or a shorter one as a whole, as it is or escaped as in URLs and in
 * JSON. NULL is no secret. The text becomes no longer. Time goes with the product of both lengths,
 * and where the secret repeats itself with that of the secret once more: both are to be short. */
void redact(char *text, const char *secret);

#endif
