/* What the routes run, see api_call.h for how; docs/api.md says what each takes and answers.
 * Those of one noun stand in one file, api_<noun>.c. */
#ifndef ARBE_APP_HANDLERS_H
#define ARBE_APP_HANDLERS_H

struct api_call;

/* POST /api/session: a key in, a cookie out. */
int session_open(struct api_call *c);

/* DELETE /api/session: the session ends, if there is one. */
int session_close(struct api_call *c);

/* GET /api/me: who am I, and in which houses. */
int me_get(struct api_call *c);

/* GET /api/houses: those of the caller. */
int house_list(struct api_call *c);

/* POST /api/houses: the caller owns it. */
int house_create(struct api_call *c);

/* GET /api/houses/:id. */
int house_get(struct api_call *c);

/* PATCH /api/houses/:id: its name, by owners. */
int house_change(struct api_call *c);

/* DELETE /api/houses/:id: with its threads, by owners. */
int house_delete(struct api_call *c);

/* GET /api/houses/:id/members. */
int member_list(struct api_call *c);

/* PUT /api/houses/:id/members/:agentId: adds or changes one, by owners. */
int member_put(struct api_call *c);

/* DELETE of a member: by itself or an owner. */
int member_remove(struct api_call *c);

/* POST /api/houses/:id/invites: by owners. */
int invite_create(struct api_call *c);

/* POST /api/invites/:token: by a stranger, who becomes an agent, or by an agent. */
int invite_claim(struct api_call *c);

/* GET /api/agents: those that the caller sees. */
int agent_list(struct api_call *c);

/* POST /api/agents: with its first key. */
int agent_create(struct api_call *c);

/* GET /api/agents/:id. */
int agent_get(struct api_call *c);

/* PATCH /api/agents/:id: by itself or who made it. */
int agent_change(struct api_call *c);

/* DELETE /api/agents/:id: likewise; its name stays. */
int agent_delete(struct api_call *c);

/* GET /api/agents/keys: without the secrets. */
int key_list(struct api_call *c);

/* POST /api/agents/keys: shows the secret, once. */
int key_create(struct api_call *c);

/* DELETE /api/agents/keys/:id. */
int key_revoke(struct api_call *c);

/* GET /api/threads: of one house, newest activity first. */
int thread_list(struct api_call *c);

/* POST /api/threads: below a house, an agent or a thread. */
int thread_create(struct api_call *c);

/* GET /api/threads/:id. */
int thread_get(struct api_call *c);

/* PATCH /api/threads/:id: by members. */
int thread_change(struct api_call *c);

/* DELETE /api/threads/:id: by owners. */
int thread_delete(struct api_call *c);

/* GET /api/threads/:id/agents: the roster of its house. */
int thread_agents(struct api_call *c);

/* GET of a config: resolved with its chain, or the patch alone. */
int house_config_get(struct api_call *c);

/* PATCH of a config: merges into the patch. */
int house_config_change(struct api_call *c);

/* DELETE of a config: the patch goes. */
int house_config_delete(struct api_call *c);

/* As house_config_get. */
int thread_config_get(struct api_call *c);

/* As house_config_change. */
int thread_config_change(struct api_call *c);

/* As house_config_delete. */
int thread_config_delete(struct api_call *c);

/* POST /api/threads/:id/entries. */
int entry_post(struct api_call *c);

/* GET /api/threads/:id/entries: the raw history, a page at a time; in api_history.c. */
int entry_list(struct api_call *c);

/* DELETE of an entry: appends a tombstone. */
int entry_delete(struct api_call *c);

/* GET and HEAD /api/threads/:id/stream: the proxy. */
int thread_stream(struct api_call *c);

/* POST /api/threads/:id/sandbox-tokens. */
int sandbox_mint(struct api_call *c);

/* DELETE /api/houses/:id/members/:agentId/sandbox-tokens: those minted before are good no more. */
int sandbox_end(struct api_call *c);

/* GET /api/board: T3 threads, a page at a time, newest activity first. */
int board_get(struct api_call *c);

/* GET /api/board/stream: what changes on it. */
int board_stream(struct api_call *c);

/* POST /api/stream/:name: entries of a sandbox, all or none. */
int sandbox_write(struct api_call *c);

/* GET /api/threads/:id/usage: what it has cost. */
int thread_usage(struct api_call *c);

/* GET /api/houses/:id/usage: likewise. */
int house_usage(struct api_call *c);

#endif
