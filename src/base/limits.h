/* Every cap in one place: the number, what it bounds, the answer at the cap. Each has a test. Those
 * that are answered with a status or a close stand in docs/operations.md, too. */
#ifndef ARBE_BASE_LIMITS_H
#define ARBE_BASE_LIMITS_H

#define KIB 1024u
#define MIB (1024u * KIB)

/* HTTP requests. */
#define HTTP_TARGET_BYTES_MAX          (8u * KIB)  /* request target; 414 */
#define HTTP_HEAD_BYTES_MAX            (16u * KIB) /* request line and headers; 431 */
#define HTTP_HEADERS_MAX               100u        /* header fields; 431 */
#define HTTP_CHUNK_LINE_BYTES_MAX      1024u       /* extensions of a chunk's size; 413 */
#define HTTP_TRAILER_BYTES_MAX         (8u * KIB)  /* trailer section; 413 */
#define HTTP_BODY_DRAIN_BYTES_MAX      (1 * MIB) /* of an unread body to keep a connection; close */
#define HTTP_BODY_WINDOW_MS            30000u    /* a body's speed is looked at so often; 408 */
#define HTTP_BODY_BYTES_PER_SECOND_MIN 1024u     /* on average in each window; 408 */
#define HTTP_BODIES_BYTES_MIN          (256ull * MIB) /* being received, or 4 x --max-body; 503 */
#define HTTP_PIPELINE_BYTES_MAX        (256 * KIB)    /* unsent answers; the next request waits */
#define HTTP_HEAD_TIMEOUT_MS           10000u /* from a head's first byte to its last; 408 */
#define HTTP_IDLE_TIMEOUT_MS           60000u /* between requests; close */
#define HTTP_REFUSED_TIMEOUT_MS        2000u  /* for the request that a refusal is sent to; close */
#define HTTP_DRAIN_TIMEOUT_MS          30000u /* reading an unread body away; close */
#define HTTP_CLOSING_TIMEOUT_MS        60000u /* sending what is left without progress; close */
#define HTTP_STOPPING_TIMEOUT_MS       500u   /* so, live, once the server is to end; close */

/* Connections above --max-connections whose request is waited for and answered; 503. Above those
 * the answer is sent at once. */
#define HTTP_REFUSED_CONNECTIONS(max) ((max) / 16u + 64u)

/* Streams. */
#define STREAM_NAME_BYTES_MAX         480u   /* decoded name; 414. LMDB keys end at 511 */
#define STREAM_CONTENT_TYPE_BYTES_MAX 256u   /* a type is shorter; 400 */
#define STREAM_SEQ_BYTES_MAX          256u   /* Stream-Seq value; 400 */
#define PRODUCER_ID_BYTES_MAX         256u   /* 400 */
#define PRODUCERS_PER_STREAM_MAX      65536u /* 429 when none is idle for PRODUCER_IDLE_MS */
#define PRODUCER_IDLE_MS              (7ull * 24 * 3600 * 1000) /* PROTOCOL.md 5.2.1, clean-up */
#define FORK_DEPTH_MAX                64u                 /* length of a chain of forks; 400 */
#define STREAM_OFFSET_MAX             9999999999999999ull /* bytes in a stream, 16 digits; 507 */
#define STREAM_TTL_SECONDS_MAX        3155760000ull       /* 100 years; a longer one is 400 */
#define WAITERS_PER_STREAM_MAX        100000u             /* live readers of one stream; 503 */
#define JSON_DEPTH_MAX                1000u               /* nested arrays and objects; 400 */
#define STREAM_CACHE_BYTES_MAX        (64ull * MIB) /* in memory though in packs; the idlest go */

/* Notes: see log/note.h. All but the last are for what the server itself makes of requests, whose
 * own caps are tighter. */
#define NOTE_KEY_BYTES_MAX   500u          /* LMDB keys end at 511 */
#define NOTE_VALUE_BYTES_MAX (128u * KIB)  /* one value */
#define NOTE_BATCH_BYTES_MAX (8u * MIB)    /* what happens as one */
#define NOTE_TOMB_BYTES_MAX  64u           /* the value that a deletion may leave on a full disk */
#define NOTES_HOT_BYTES_MAX  (64ull * MIB) /* waiting for a checkpoint; 503 */

/* The commands. */
#define COPY_BATCH_BYTES_MAX (80u * MIB)  /* one append of a copy; above a message's most: never */
#define STDIN_BYTES_MAX      (256u * MIB) /* one message from stdin; ends the command */

/* Storage. */
#define EXTENT_BYTES_MAX         (8u * MIB)    /* data of one extent in a pack: whole messages */
#define EXTENT_MESSAGE_BYTES_MAX (1024u * MIB) /* data of an extent that is one larger message */
#define PACK_BYTES_MAX           (256u * MIB)  /* a pack is finished at this size */
#define HOLDS_MAX                4u            /* tools that read a served directory; refused */
#define HOLD_SILENCE_MS          60000u        /* without a word of the tool its hold ends */
#define HOLD_MS_MAX              (24u * 3600 * 1000) /* a hold lasts; then it is broken */
#define PACK_FDS_MAX             256u                /* open packs; the idlest is closed */
#define STREAM_EXTENTS_SMALL_MAX 16u                 /* small extents before a merge */
#define RUN_MARKS_BYTES_MAX      (64u * KIB) /* marks of one chunk in memory, of one extent */
#define PREPARE_BYTES_MAX        (64u * KIB) /* a larger JSON body is looked through on the pool */

/* Subscriptions. */
#define SUBSCRIPTIONS_MAX                  100000u /* in all, with tombstones; 429 */
#define LISTING_COUNT_MAX                  1000u   /* streams on one page of the listing; 400 */
#define LISTING_BYTES_MAX                  (256u * KIB) /* of a page, then it ends with a stream */
#define SUBSCRIPTION_BODY_BYTES_MAX        (64u * KIB)  /* of a control request; 413 */
#define SUBSCRIPTION_ID_BYTES_MAX          256u         /* decoded; 400 */
#define SUBSCRIPTION_LINKS_MAX             10000u   /* streams of one; 429, counted if by append */
#define SUBSCRIPTION_LINKS_ALL_MAX         2000000u /* streams of all together; 429, likewise */
#define SUBSCRIPTION_URL_BYTES_MAX         (2u * KIB) /* of a webhook; 400 */
#define SUBSCRIPTION_DESCRIPTION_BYTES_MAX (4u * KIB) /* 400 */
#define SUBSCRIPTION_WORKER_BYTES_MAX      256u       /* name of a claiming worker; 400 */
#define SUBSCRIPTION_LEASE_MS_MIN          1000u      /* lease_ttl_ms; 400 */
#define SUBSCRIPTION_LEASE_MS_MAX          600000u    /* lease_ttl_ms; 400 */
#define SUBSCRIPTION_OPS_MAX               4096u      /* control requests that wait; 503 */
#define SUBSCRIPTION_NOTES_MAX             256u  /* batches on their way to the log; others wait */
#define SUBSCRIPTION_DELIVERIES_MAX        4096u /* webhooks at the sender; others wait */
#define SUBSCRIPTION_DELIVERIES_BYTES_MAX  (64u * MIB) /* of their bodies; others wait */
#define SUBSCRIPTION_DELIVERIES_EACH       2u       /* of one subscription; the newest wake waits */
#define SUBSCRIPTION_GREW_MAX              65536u   /* streams whose growth waits; list all */
#define SUBSCRIPTION_TOMBSTONE_MS          86400000 /* a deleted id keeps its generation so long */
#define SUBSCRIPTION_RETRY_MS_MIN          1000u    /* back-off after the first failure */
#define SUBSCRIPTION_RETRY_MS_MAX          60000u   /* longest back-off, before jitter */
#define SUBSCRIPTION_LEASE_MS_DEFAULT      30000u   /* when left out */
#define GLOB_SEGMENTS_MAX                  64u      /* of a pattern; 400 */
#define INDEX_NODES_MAX                    1000000u /* segments of all patterns; 429 */

/* Webhooks. */
#define WEBHOOKS_MAX             256u        /* under way; others wait */
#define WEBHOOKS_PER_HOST_MAX    16u         /* under way to one host and port; others wait */
#define WEBHOOK_LOOKUPS_MAX      512u        /* threads asking for names; others wait */
#define WEBHOOK_HOSTS_IDLE_MAX   1024u       /* remembered with nothing to send; the idlest goes */
#define WEBHOOK_TIMEOUT_MS       30000u      /* from the look-up to the end of the reply; failed */
#define WEBHOOK_REPLY_BYTES_MAX  (64u * KIB) /* body of a reply; failed */
#define WEBHOOK_HEADER_BYTES_MAX (64u * KIB) /* all header lines of a reply; failed */

/* Reads of threads whose streams another server has (--streams-url). */
#define UPSTREAM_RELAYS_MAX      2048u       /* under way; 503 */
#define UPSTREAM_HEAD_BYTES_MAX  (32u * KIB) /* of the other server's answer; 503 */
#define UPSTREAM_QUEUE_BYTES_MAX (96u * KIB) /* of one that its client has not taken; it waits */
#define UPSTREAM_CONNECT_MS      2000u       /* to a connection; 503 */
#define UPSTREAM_ANSWER_MS       3000u       /* to a whole answer to the application; 503 */
#define UPSTREAM_HEAD_MS         10000u      /* to the head of an answer; 503 */
#define UPSTREAM_DRAIN_MS        3000u       /* for all of it once the server is to end; 503 */
#define UPSTREAM_LONG_POLL_MS    120000u     /* likewise, of a long-poll; 503 */
#define UPSTREAM_SILENCE_MS      60000u      /* within the body, but of SSE; close */

/* The client library. */
#define CLIENT_STARTED_MAX       65536u      /* calls started and not told of; BUSY */
#define CLIENT_NAME_BYTES_MAX    2000u       /* of a stream; ARGUMENT */
#define CLIENT_SENTENCE_BYTES    (8u * KIB)  /* of an error's body are looked at */
#define CLIENT_LISTING_BYTES_MAX (16u * MIB) /* of one page of a listing; FORMAT */
#define CLIENT_IGNORED_BYTES_MAX (1u * MIB)  /* of a body nobody wants; the connection ends */
#define CLIENT_HEAD_BYTES_MAX    (64u * KIB) /* of an answer's head; FORMAT */

/* Producers of the client library. */
#define PRODUCER_EPOCH_MAX     9007199254740991 /* 2^53 - 1 (PROTOCOL.md 5.2.1); ARGUMENT */
#define PRODUCER_IN_FLIGHT_MAX 64               /* batches; ARGUMENT */

/* Threads. */
#define API_BODY_BYTES_MAX      (1u * MIB)    /* of a request; 413 */
#define API_BATCH_BYTES_MAX     (8u * MIB)    /* of what a sandbox writes at once; 413 */
#define API_ANSWER_BYTES_MAX    (16u * MIB)   /* a list ends its page long before */
#define API_PAGE_BYTES_MAX      (256u * KIB)  /* of a list, then its page ends with an item */
#define API_INLINE_BYTES_MAX    (64u * KIB)   /* of a post judged on the worker */
#define APP_CALLS_MAX           4096u         /* waiting for a thread, of each pool; 503 */
#define SANDBOX_BATCH_MAX       1000u         /* entries that a sandbox writes at once; 400 */
#define RECORD_ID_BYTES_MAX     64u           /* of an id in a body or query; 400 */
#define AGENT_TEXT_BYTES_MAX    (4u * KIB)    /* description of an agent; 400 */
#define AGENT_PROMPT_BYTES_MAX  (64u * KIB)   /* system prompt of an agent; 400 */
#define RECORD_NAME_BYTES_MAX   200u          /* of an agent, house or thread; 400 */
#define ENTRY_ID_BYTES_MAX      96u           /* chosen by a client; 400 */
#define ENTRY_AUTHOR_BYTES_MAX  96u           /* 400 */
#define CHAT_TEXT_BYTES_MAX     (64u * KIB)   /* decoded; 413 */
#define CHAT_ATTACHMENTS_MAX    64u           /* of one entry; 400 */
#define PAYLOAD_ID_BYTES_MAX    256u          /* of what a payload refers to; 400 */
#define PAYLOAD_DEPTH_MAX       64u           /* nested arrays and objects; 400 */
#define CONFIG_BYTES_MAX        (64u * KIB)   /* of a patch; 413 */
#define CONFIG_DEPTH_MAX        16u           /* nested arrays and objects of a patch; 400 */
#define CONFIG_KEYS_MAX         1000u         /* of a patch, at all depths; 413 */
#define POSTS_MAX               4096u         /* posts of entries under way; 503 */
#define POSTS_BYTES_MAX         (64ull * MIB) /* of their entries; 503 */
#define INDEX_THREADS_MAX       4096u         /* threads with some of it in memory; the idlest go */
#define INDEX_ROWS_MAX          65536u /* of the index that wait to be written; written at once */
#define SANDBOX_TOKEN_BYTES_MAX (8u * KIB) /* 401 */

/* Connections to T3 servers. The head of a request goes through libwebsockets, which has room for
 * this much of it. */
#define T3_URL_BYTES_MAX      1024u        /* of a server's URL; ARGUMENT */
#define T3_URL_HOST_BYTES_MAX 100u         /* of its host; ARGUMENT */
#define T3_TOKEN_BYTES_MAX    (4u * KIB)   /* ARGUMENT */
#define T3_AGENT_BYTES_MAX    256u         /* of a user agent; ARGUMENT */
#define T3_METHOD_BYTES_MAX   256u         /* of a method's name; ARGUMENT */
#define T3_MESSAGE_BYTES      (256u * MIB) /* from a server, unless told otherwise; LIMIT */
#define T3_HEAD_BYTES_MAX     (16u * KIB)  /* of the answer to the upgrade; PROTOCOL */
#define T3_REQUESTS_MAX       65536u       /* that requests_max may be; ARGUMENT */
#define T3_LOOKUPS_MAX        1024u        /* of names under way in a process; NETWORK */
#define T3_CLOSE_MS           1000u        /* for the server's answer to a close; then it ends */

/* The board of T3 threads. */
#define T3_ROWS_MAX           100000u /* of all hosts, unless told otherwise; LIMIT */
#define T3_HOSTS_MAX          1024u   /* of a board; LIMIT */
#define T3_HOST_BYTES_MAX     255u    /* of a label; ARGUMENT */
#define T3_DELETED_MAX        4096u   /* threads remembered as deleted; the oldest is forgotten */
#define T3_ID_BYTES_MAX       256u    /* decoded; the item is skipped */
#define T3_TITLE_BYTES_MAX    (4u * KIB) /* cut */
#define T3_STATE_BYTES_MAX    64u        /* cut */
#define T3_GRAPHEME_BYTES_MAX 64u        /* of a snippet, on average; cut */
#define BOARD_PAGE_MAX        1000u      /* rows on one page of the API; 400 */
#define BOARD_TOMBS_MAX       4096u /* rows that went, kept for who is behind; it begins anew */

/* What T3 servers answer to arbe t3. */
#define T3_ANSWER_BYTES_MAX  (64u * KIB) /* of HTTP; an error */
#define SHAPE_DEPTH_MAX      24u         /* nested arrays and objects that are shown; "..." */
#define SHAPE_PLACES_MAX     20000u      /* of a shape; "..." */
#define SHAPE_NAMES_MAX      256u        /* of members at one place; they are keys of a map */
#define SHAPE_NAMES_EACH     96u         /* of one object; likewise */
#define SHAPE_NAME_BYTES_MAX 40u         /* likewise */

#endif
