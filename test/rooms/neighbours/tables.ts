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
/** A position far from those of the service, and a number that is none of its events'. */
const FAR = '(SELECT coalesce(max(seq), 0) + 1000000 FROM heddle_event)'
const NO_EVENT = 1_000_000_000_000

/** By table: what of it is malformed, foreign or huge. */
export function deedsOf(isFile: boolean): Record<string, Deeds> {
  const odd = oddOf(isFile)
  const many = manyOf(isFile)
  const letters = (select: string): string =>
    `INSERT INTO heddle_dead (id, event_id, event, grp, subscriber, key, envelope, payload, error, attempts, bytes, at_ms, is_parked) ${select}`
  return {
    ...(isFile ? ofStore(many) : ofLog(isFile, many)),
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
  heddle_process: {
    malformed: `INSERT INTO heddle_process (epoch, replica, identity, expires_at, knows) VALUES (-7, '', '{', 'infinity', -1)`,
    foreign: `INSERT INTO heddle_process (epoch, replica, identity, expires_at, is_ready) VALUES (-7, 'others', '{}', now() + interval '1 hour', 1)`,
    huge: `INSERT INTO heddle_process (epoch, replica, identity, expires_at) SELECT -n, 'others', '{}', 'infinity' FROM ${many}`,
    undone: 'DELETE FROM heddle_process WHERE epoch < 0',
  },
  heddle_slot: {
    malformed: 'INSERT INTO heddle_slot VALUES (-1, -1, -1), (64, 9223372036854775807, -1)',
    foreign: 'UPDATE heddle_slot SET heir = 4711 WHERE slot < 32',
    huge: `INSERT INTO heddle_slot SELECT 100 + n FROM ${many}`,
    undone:
      'DELETE FROM heddle_slot WHERE slot NOT BETWEEN 0 AND 63; UPDATE heddle_slot SET heir = 0 WHERE heir = 4711',
  },
  heddle_copy: {
    malformed: `INSERT INTO heddle_copy SELECT epoch, -1, '', '', '{', '', 'k', -1 FROM heddle_process`,
    foreign: `INSERT INTO heddle_copy SELECT epoch, -1, 'evt_x', 'of.others', ${ENVELOPE}, '{}', NULL, 0 FROM heddle_process`,
    huge: `INSERT INTO heddle_copy SELECT epoch, -n, 'evt_x', 'of.others', ${ENVELOPE}, '{}', NULL, 0 FROM heddle_process, ${many}`,
    undone: 'DELETE FROM heddle_copy',
  },
})

function ofLog(isFile: boolean, many: string): Record<string, Deeds> {
  const odd = oddOf(isFile)
  const event = (seq: string, id: string, name: string, shape: string, payload: string, key: string): string =>
    `SELECT ${seq}, ${id}, ${name}, ${shape}, ${payload}, ${key}, 0, 0, 0, 0`
  const events = (select: string): string =>
    `INSERT INTO heddle_event (seq, id, event, envelope, payload, key, due_ms, expires_ms, owner, ord) ${select}`
  return {
    heddle_event: {
      malformed: events(event(FAR, "'strange'", "'order.taken'", "'{'", "'}'", "'k'")),
      foreign: events(event(FAR, "'strange'", "'of.others'", ENVELOPE, "'{}'", 'NULL')),
      huge: `${events(event(FAR, "'strange'", "'order.taken'", ENVELOPE, textOf(isFile, MIB_8), 'NULL'))};
        ${events(`${event(`${FAR} + n`, "'strange' || n", "'of.others'", ENVELOPE, "'{}'", 'NULL')} FROM ${many}`)}`,
      undone: "DELETE FROM heddle_event WHERE id LIKE 'strange%'",
    },
    heddle_delivery: {
      malformed: `INSERT INTO heddle_delivery VALUES (${NO_EVENT}, 'none', -1, -1, ${odd}, '')`,
      foreign: `INSERT INTO heddle_delivery VALUES (${NO_EVENT}, 'others.Plugin.on', 1, 0, -1, '')`,
      huge: `INSERT INTO heddle_delivery SELECT ${NO_EVENT} + n, 'others.Plugin.on', 1, 0, -1, 'why' FROM ${many}`,
      undone: `DELETE FROM heddle_delivery WHERE seq >= ${NO_EVENT}`,
    },
    heddle_group: {
      malformed: `INSERT INTO heddle_group VALUES ('', '', ${odd}), ('order.taken', 'a b c', ${odd})`,
      foreign: "INSERT INTO heddle_group VALUES ('order.taken', 'others.Plugin.on', 1)",
      huge: `INSERT INTO heddle_group SELECT 'of.others', 'others.Plugin.on' || n, 1 FROM ${many}`,
      undone: "DELETE FROM heddle_group WHERE event = '' OR grp = 'a b c' OR grp LIKE 'others%'",
    },
  }
}

/** On a file a row is an event for one group. */
function ofStore(many: string): Record<string, Deeds> {
  const into = 'INSERT INTO heddle_delivery (grp, thread, event_id, event, envelope, payload, key)'
  const taken = "FROM heddle_group WHERE event = 'order.taken'"
  return {
    heddle_delivery: {
      malformed: `${into} SELECT id, 0, 'strange', 'order.taken', '{', '}', 'k' ${taken}; ${into} VALUES ('odd', 'odd', 'strange', 'order.taken', '{', '}', 'k')`,
      foreign: `${into} VALUES (999999, 0, 'strange', 'of.others', ${ENVELOPE}, '{}', NULL)`,
      huge: `${into} SELECT id, 0, 'strange', 'order.taken', ${ENVELOPE}, ${textOf(true, MIB_8)}, NULL ${taken};
        ${into} SELECT 999999, 0, 'strange' || n, 'of.others', ${ENVELOPE}, '{}', NULL FROM ${many}`,
      undone: "DELETE FROM heddle_delivery WHERE event_id LIKE 'strange%'",
    },
    heddle_group: {
      malformed:
        "INSERT INTO heddle_group (event, grp, seen_ms) VALUES ('', '', 'odd'), ('order.taken', 'a b c', 'odd')",
      foreign: "INSERT INTO heddle_group (event, grp, seen_ms) VALUES ('order.taken', 'others.Plugin.on', 1)",
      huge: `INSERT INTO heddle_group (event, grp, seen_ms) SELECT 'of.others', 'others.Plugin.on' || n, 1 FROM ${many}`,
      undone: "DELETE FROM heddle_group WHERE event = '' OR grp = 'a b c' OR grp LIKE 'others%'",
    },
    heddle_parked: {
      malformed: "INSERT INTO heddle_parked VALUES ('odd', 'k', 'none')",
      foreign: `INSERT INTO heddle_parked SELECT id, '"k"', 'none' ${taken}`,
      huge: `INSERT INTO heddle_parked SELECT id, n, 'none' FROM heddle_group, ${many}`,
      undone: "DELETE FROM heddle_parked WHERE dead_letter = 'none'",
    },
  }
}
