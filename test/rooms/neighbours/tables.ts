/** What a neighbour in the database does to a table: statements by fault, and what takes back each of them. All tables can be dropped, too. */
export type Deeds = Record<Fault | 'undone', string>

export const FAULTS = ['malformed', 'foreign', 'huge'] as const
export type Fault = (typeof FAULTS)[number]

const MIB_8 = 8 * 1024 * 1024
const MANY = 3000

/** The largest number that a column takes; a file takes any text. */
const oddOf = (isFile: boolean): string => (isFile ? "'odd'" : '9223372036854775807')

const manyOf = (isFile: boolean): string =>
  isFile
    ? `(WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${MANY}) SELECT n FROM n) AS many`
    : `generate_series(1, ${MANY}) AS many (n)`

const textOf = (isFile: boolean, length: number): string =>
  isFile ? `hex(zeroblob(${length / 2}))` : `repeat('x', ${length})`

const ENVELOPE = `'[null,null,"","x",0,""]'`
/** By table: what of it is malformed, foreign or huge. */
export function deedsOf(isFile: boolean): Record<string, Deeds> {
  const odd = oddOf(isFile)
  const many = manyOf(isFile)
  const letters = (select: string): string =>
    `INSERT INTO heddle_dead (id, event_id, event, grp, subscriber, key, envelope, payload, error, attempts, bytes, at_ms, is_parked) ${select}`
  return {
    ...ofStore(isFile, many),
    heddle_dead: {
      malformed: letters(`SELECT 'dl_strange', '', '', '', '', 'k', '{', '', '', -1, -1, ${odd}, 1`),
      foreign: letters(
        `SELECT 'dl_strange', 'evt_x', 'order.taken', 'others.Plugin.on', 'others.Plugin', '"k"', ${ENVELOPE}, '{}', 'why', 1, 1, 1, 1`,
      ),
      huge: letters(
        `SELECT 'dl_strange' || n, 'evt_x', 'of.others', 'g', 's', NULL, ${ENVELOPE}, ${textOf(isFile, 4096)}, 'why', 1, 1, 1, 0 FROM ${many}`,
      ),
      undone: "DELETE FROM heddle_dead WHERE id LIKE 'dl_strange%'",
    },
    heddle_inbox: {
      malformed: `INSERT INTO heddle_inbox VALUES ('', '', ${odd})`,
      foreign: "INSERT INTO heddle_inbox VALUES ('evt_x', 'others.Plugin.on', 1)",
      huge: `INSERT INTO heddle_inbox SELECT 'evt_' || n, 'others.Plugin.on', 1 FROM ${many}`,
      undone: "DELETE FROM heddle_inbox WHERE grp = '' OR grp LIKE 'others%'",
    },
    heddle_idempotency: {
      malformed: `INSERT INTO heddle_idempotency VALUES ('strange', 'k', 'p', 'c', 'odd', -1, '{', NULL, ${odd})`,
      foreign: "INSERT INTO heddle_idempotency VALUES ('strange', 'k', 'p', 'c', 'running', NULL, NULL, NULL, 1)",
      huge: `INSERT INTO heddle_idempotency SELECT 'strange', 'k' || n, 'p', 'c', 'done', 200, '{}', NULL, 1 FROM ${many}`,
      undone: "DELETE FROM heddle_idempotency WHERE scope = 'strange'",
    },
    heddle_log: {
      malformed: `INSERT INTO heddle_log VALUES ('unclean_end odd', ${odd})`,
      foreign: "INSERT INTO heddle_log VALUES ('of others', 1)",
      huge: `INSERT INTO heddle_log SELECT 'of others ' || n, 1 FROM ${many}`,
      undone: "DELETE FROM heddle_log WHERE name LIKE '%odd' OR name LIKE 'of others%'",
    },
    heddle_job: {
      malformed: `INSERT INTO heddle_job VALUES ('strange', '{', ${odd}, ${odd}, -1, -1, ${odd}, NULL)`,
      foreign: "INSERT INTO heddle_job VALUES ('strange', '{}', 1, NULL, 1, 0, 1, NULL)",
      huge: `INSERT INTO heddle_job SELECT 'strange' || n, '{}', 1, NULL, 1, 0, 1, NULL FROM ${many}`,
      undone: "DELETE FROM heddle_job WHERE name LIKE 'strange%'",
    },
    heddle_job_ask: {
      malformed: `INSERT INTO heddle_job_ask VALUES ('strange', '', '', ${odd}, NULL), ('stranger', '', '', ${odd}, '{')`,
      foreign: "INSERT INTO heddle_job_ask VALUES ('strange', 'others.Plugin/job', 'others', 1, NULL)",
      huge: `INSERT INTO heddle_job_ask SELECT 'strange' || n, 'others.Plugin/job', 'others', 1, NULL FROM ${many}`,
      undone: "DELETE FROM heddle_job_ask WHERE id LIKE 'strange%'",
    },
    heddle_job_run: {
      malformed: "INSERT INTO heddle_job_run VALUES ('strange', -1, '{')",
      foreign: 'INSERT INTO heddle_job_run VALUES (\'strange\', 1, \'[null, {"id": "job_strange"}]\')',
      huge: `INSERT INTO heddle_job_run SELECT 'strange' || n, 1, ${textOf(isFile, 4096)} FROM ${many}`,
      undone: "DELETE FROM heddle_job_run WHERE job LIKE 'strange%'",
    },
    heddle_lease: {
      malformed: `UPDATE heddle_lease SET identity = '{', expires_ms = ${odd}`,
      foreign: "UPDATE heddle_lease SET holder = 'others', expires_ms = 9000000000000, fence = fence + 1",
      huge: `INSERT INTO heddle_lease SELECT 'strange' || n, 'others', '{}', 1, 1 FROM ${many}`,
      undone: "DELETE FROM heddle_lease WHERE name = 'beat' OR name LIKE 'strange%'",
    },
    ...(isFile ? {} : serverDeeds(many)),
    // Without it the next start has all migrations before it.
    _migrations: {
      malformed: "INSERT INTO _migrations VALUES ('strange', '', '')",
      foreign: "INSERT INTO _migrations VALUES ('strange/001_x', 'sum', '2020-01-01')",
      huge: `INSERT INTO _migrations SELECT 'strange/' || n, 'sum', '' FROM ${many}`,
      undone: "DELETE FROM _migrations WHERE id LIKE 'strange%'",
    },
  }
}

/** Of the tables that only a server has. */
const serverDeeds = (many: string): Record<string, Deeds> => ({
  heddle_member: {
    malformed: "INSERT INTO heddle_member (replica, identity, until) VALUES ('', '{', 'infinity')",
    foreign: "INSERT INTO heddle_member (replica, identity, until) VALUES ('others', '{}', now() + interval '1 hour')",
    huge: `INSERT INTO heddle_member (replica, identity, until) SELECT 'others', '{}', 'infinity' FROM ${many}`,
    undone: "DELETE FROM heddle_member WHERE replica IN ('', 'others')",
  },
  heddle_member_group: {
    malformed: 'INSERT INTO heddle_member_group (member, grp) VALUES (-1, -1)',
    foreign: 'INSERT INTO heddle_member_group (member, grp) SELECT 4711, id FROM heddle_group',
    huge: `INSERT INTO heddle_member_group (member, grp) SELECT -n, id FROM heddle_group, ${many}`,
    undone: 'DELETE FROM heddle_member_group WHERE member < 0 OR member = 4711',
  },
  heddle_slot: {
    malformed: 'INSERT INTO heddle_slot VALUES (-1, -1, -1, -1), (999999, 64, 9223372036854775807, -1)',
    foreign: 'UPDATE heddle_slot SET member = 4711 WHERE slot < 8',
    huge: `INSERT INTO heddle_slot SELECT 1000000 + n, 0, NULL, 0 FROM ${many}`,
    undone: 'DELETE FROM heddle_slot WHERE grp < 0 OR grp > 999998',
  },
})

/** A row is an event for one group. */
function ofStore(isFile: boolean, many: string): Record<string, Deeds> {
  const odd = oddOf(isFile)
  const into = `INSERT INTO heddle_delivery (grp, ${isFile ? '' : 'slot, '}thread, event_id, event, envelope, payload, key)`
  const slot = isFile ? '' : '0, '
  const parked = isFile ? '' : ', 0'
  const taken = "FROM heddle_group WHERE event = 'order.taken'"
  return {
    heddle_delivery: {
      malformed: `${into} SELECT id, ${slot}0, 'strange', 'order.taken', '{', '}', 'k' ${taken}${isFile ? `; ${into} VALUES ('odd', 'odd', 'strange', 'order.taken', '{', '}', 'k')` : ''}`,
      foreign: `${into} VALUES (999999, ${slot}0, 'strange', 'of.others', ${ENVELOPE}, '{}', NULL)`,
      huge: `${into} SELECT id, ${slot}0, 'strange', 'order.taken', ${ENVELOPE}, ${textOf(isFile, MIB_8)}, NULL ${taken};
        ${into} SELECT 999999, ${slot}0, 'strange' || n, 'of.others', ${ENVELOPE}, '{}', NULL FROM ${many}`,
      undone: "DELETE FROM heddle_delivery WHERE event_id LIKE 'strange%'",
    },
    heddle_group: {
      malformed: `INSERT INTO heddle_group (event, grp, seen_ms) VALUES ('', '', ${odd}), ('order.taken', 'a b c', ${odd})`,
      foreign: "INSERT INTO heddle_group (event, grp, seen_ms) VALUES ('order.taken', 'others.Plugin.on', 1)",
      huge: `INSERT INTO heddle_group (event, grp, seen_ms) SELECT 'of.others', 'others.Plugin.on' || n, 1 FROM ${many}`,
      undone: "DELETE FROM heddle_group WHERE event = '' OR grp = 'a b c' OR grp LIKE 'others%'",
    },
    heddle_parked: {
      malformed: `INSERT INTO heddle_parked VALUES (${isFile ? "'odd'" : '-1'}, 'k', 'none'${parked})`,
      foreign: `INSERT INTO heddle_parked SELECT id, '"k"', 'none'${parked} ${taken}`,
      huge: `INSERT INTO heddle_parked SELECT id, n${isFile ? '' : '::text'}, 'none'${parked} FROM heddle_group, ${many}`,
      undone: "DELETE FROM heddle_parked WHERE dead_letter = 'none'",
    },
  }
}
