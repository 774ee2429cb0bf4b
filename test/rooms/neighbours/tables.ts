/** What a neighbour in the database does to a table: statements, and what takes them back. */
export interface Deed {
  does: string
  undone: string
}

export type Fault = 'malformed' | 'foreign' | 'huge' | 'gone'

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

/** A position far from those of the service, and a number that is none of its events'. */
const FAR = '(SELECT coalesce(max(seq), 0) + 1000000 FROM heddle_event)'
const NO_EVENT = 1_000_000_000_000

type Deeds = Partial<Record<Exclude<Fault, 'gone'>, Deed>>

/** By table: what of it is malformed, foreign or huge. All can be dropped, which is `gone`. */
export function deedsOf(isFile: boolean): Record<string, Deeds> {
  const odd = oddOf(isFile)
  const many = manyOf(isFile)
  const envelope = `'[null,null,"","x",0,""]'`
  const owned = isFile ? '' : ', owner, ord'
  const event = (seq: string, id: string, name: string, shape: string, payload: string, key: string): string =>
    `SELECT ${seq}, ${id}, ${name}, ${shape}, ${payload}, ${key}, 0, 0${isFile ? '' : ', 0, 0'}`
  const events = (select: string): string =>
    `INSERT INTO heddle_event (seq, id, event, envelope, payload, key, due_ms, expires_ms${owned}) ${select}`
  const letters = (select: string): string =>
    `INSERT INTO heddle_dead (id, event_id, event, grp, subscriber, key, envelope, payload, error, attempts, bytes, at_ms, is_parked) ${select}`
  const strange = "DELETE FROM heddle_event WHERE id LIKE 'strange%'"
  const noLetters = "DELETE FROM heddle_dead WHERE id LIKE 'dl_strange%'"
  return {
    heddle_event: {
      malformed: { does: events(event(`${FAR}`, "'strange'", "'order.taken'", "'{'", "'}'", "'k'")), undone: strange },
      foreign: {
        does: events(event(`${FAR}`, "'strange'", "'of.others'", envelope, "'{}'", 'NULL')),
        undone: strange,
      },
      huge: {
        does: `${events(event(`${FAR}`, "'strange'", "'order.taken'", envelope, textOf(isFile, MIB_8), 'NULL'))};
          ${events(`${event(`${FAR} + n`, "'strange' || n", "'of.others'", envelope, "'{}'", 'NULL')} FROM ${many}`)}`,
        undone: strange,
      },
    },
    heddle_delivery: {
      malformed: {
        does: `INSERT INTO heddle_delivery VALUES (${NO_EVENT}, 'none', ${isFile ? "'odd', 'odd'" : '-1, -1'}, ${odd}, '')`,
        undone: `DELETE FROM heddle_delivery WHERE seq >= ${NO_EVENT}`,
      },
      foreign: {
        does: `INSERT INTO heddle_delivery VALUES (${NO_EVENT}, 'others.Plugin.on', 1, 0, -1, '')`,
        undone: `DELETE FROM heddle_delivery WHERE seq >= ${NO_EVENT}`,
      },
      huge: {
        does: `INSERT INTO heddle_delivery SELECT ${NO_EVENT} + n, 'others.Plugin.on', 1, 0, -1, 'why' FROM ${many}`,
        undone: `DELETE FROM heddle_delivery WHERE seq >= ${NO_EVENT}`,
      },
    },
    heddle_group: {
      malformed: {
        does: `INSERT INTO heddle_group VALUES ('', '', ${odd}), ('order.taken', 'a b c', ${odd})`,
        undone: "DELETE FROM heddle_group WHERE event = '' OR grp = 'a b c'",
      },
      foreign: {
        does: "INSERT INTO heddle_group VALUES ('order.taken', 'others.Plugin.on', 1)",
        undone: "DELETE FROM heddle_group WHERE grp LIKE 'others%'",
      },
      huge: {
        does: `INSERT INTO heddle_group SELECT 'of.others', 'others.Plugin.on' || n, 1 FROM ${many}`,
        undone: "DELETE FROM heddle_group WHERE grp LIKE 'others%'",
      },
    },
    heddle_dead: {
      malformed: {
        does: letters(`SELECT 'dl_strange', '', '', '', '', 'k', '{', '', '', -1, -1, ${odd}, 1`),
        undone: noLetters,
      },
      foreign: {
        does: letters(
          `SELECT 'dl_strange', 'evt_x', 'order.taken', 'others.Plugin.on', 'others.Plugin', '"k"', ${envelope}, '{}', 'why', 1, 1, 1, 1`,
        ),
        undone: noLetters,
      },
      huge: {
        does: letters(
          `SELECT 'dl_strange' || n, 'evt_x', 'of.others', 'g', 's', NULL, ${envelope}, ${textOf(isFile, 4096)}, 'why', 1, 1, 1, 0 FROM ${many}`,
        ),
        undone: noLetters,
      },
    },
    heddle_inbox: {
      malformed: {
        does: `INSERT INTO heddle_inbox VALUES ('', '', ${odd})`,
        undone: "DELETE FROM heddle_inbox WHERE grp = ''",
      },
      foreign: {
        does: "INSERT INTO heddle_inbox VALUES ('evt_x', 'others.Plugin.on', 1)",
        undone: "DELETE FROM heddle_inbox WHERE grp LIKE 'others%'",
      },
      huge: {
        does: `INSERT INTO heddle_inbox SELECT 'evt_' || n, 'others.Plugin.on', 1 FROM ${many}`,
        undone: "DELETE FROM heddle_inbox WHERE grp LIKE 'others%'",
      },
    },
    heddle_idempotency: {
      malformed: {
        does: `INSERT INTO heddle_idempotency VALUES ('strange', 'k', 'p', 'c', 'odd', -1, '{', NULL, ${odd})`,
        undone: "DELETE FROM heddle_idempotency WHERE scope = 'strange'",
      },
      foreign: {
        does: "INSERT INTO heddle_idempotency VALUES ('strange', 'k', 'p', 'c', 'running', NULL, NULL, NULL, 1)",
        undone: "DELETE FROM heddle_idempotency WHERE scope = 'strange'",
      },
      huge: {
        does: `INSERT INTO heddle_idempotency SELECT 'strange', 'k' || n, 'p', 'c', 'done', 200, '{}', NULL, 1 FROM ${many}`,
        undone: "DELETE FROM heddle_idempotency WHERE scope = 'strange'",
      },
    },
    heddle_log: {
      malformed: {
        does: `INSERT INTO heddle_log VALUES ('unclean_end odd', ${odd})`,
        undone: "DELETE FROM heddle_log WHERE name LIKE '%odd'",
      },
      foreign: {
        does: "INSERT INTO heddle_log VALUES ('of others', 1)",
        undone: "DELETE FROM heddle_log WHERE name LIKE 'of others%'",
      },
      huge: {
        does: `INSERT INTO heddle_log SELECT 'of others ' || n, 1 FROM ${many}`,
        undone: "DELETE FROM heddle_log WHERE name LIKE 'of others%'",
      },
    },
    heddle_job: {
      malformed: {
        does: `INSERT INTO heddle_job VALUES ('strange', '{', ${odd}, ${odd}, -1, -1, ${odd}, NULL)`,
        undone: "DELETE FROM heddle_job WHERE name LIKE 'strange%'",
      },
      foreign: {
        does: "INSERT INTO heddle_job VALUES ('strange', '{}', 1, NULL, 1, 0, 1, NULL)",
        undone: "DELETE FROM heddle_job WHERE name LIKE 'strange%'",
      },
      huge: {
        does: `INSERT INTO heddle_job SELECT 'strange' || n, '{}', 1, NULL, 1, 0, 1, NULL FROM ${many}`,
        undone: "DELETE FROM heddle_job WHERE name LIKE 'strange%'",
      },
    },
    heddle_lease: {
      malformed: {
        does: `UPDATE heddle_lease SET identity = '{', expires_ms = ${odd}`,
        undone: "DELETE FROM heddle_lease WHERE name = 'beat'",
      },
      foreign: {
        does: "UPDATE heddle_lease SET holder = 'others', expires_ms = 9000000000000, fence = fence + 1",
        undone: "DELETE FROM heddle_lease WHERE name = 'beat'",
      },
      huge: {
        does: `INSERT INTO heddle_lease SELECT 'strange' || n, 'others', '{}', 1, 1 FROM ${many}`,
        undone: "DELETE FROM heddle_lease WHERE name LIKE 'strange%'",
      },
    },
    ...(isFile ? {} : serverDeeds(many, envelope)),
    // Without it the next start has all migrations before it.
    _migrations: {
      malformed: {
        does: "INSERT INTO _migrations VALUES ('strange', '', '')",
        undone: "DELETE FROM _migrations WHERE id LIKE 'strange%'",
      },
      foreign: {
        does: "INSERT INTO _migrations VALUES ('strange/001_x', 'sum', '2020-01-01')",
        undone: "DELETE FROM _migrations WHERE id LIKE 'strange%'",
      },
      huge: {
        does: `INSERT INTO _migrations SELECT 'strange/' || n, 'sum', '' FROM ${many}`,
        undone: "DELETE FROM _migrations WHERE id LIKE 'strange%'",
      },
    },
  }
}

/** Of the tables that only a server has. */
const serverDeeds = (many: string, envelope: string): Record<string, Deeds> => ({
  heddle_process: {
    malformed: {
      does: `INSERT INTO heddle_process (epoch, replica, identity, expires_at, knows) VALUES (-7, '', '{', 'infinity', -1)`,
      undone: 'DELETE FROM heddle_process WHERE epoch < 0',
    },
    foreign: {
      does: `INSERT INTO heddle_process (epoch, replica, identity, expires_at, is_ready) VALUES (-7, 'others', '{}', now() + interval '1 hour', 1)`,
      undone: 'DELETE FROM heddle_process WHERE epoch < 0',
    },
    huge: {
      does: `INSERT INTO heddle_process (epoch, replica, identity, expires_at) SELECT -n, 'others', '{}', 'infinity' FROM ${many}`,
      undone: 'DELETE FROM heddle_process WHERE epoch < 0',
    },
  },
  heddle_slot: {
    malformed: {
      does: 'INSERT INTO heddle_slot VALUES (-1, -1, -1), (64, 9223372036854775807, -1)',
      undone: 'DELETE FROM heddle_slot WHERE slot NOT BETWEEN 0 AND 63',
    },
    foreign: { does: 'UPDATE heddle_slot SET heir = 4711 WHERE slot < 32', undone: 'UPDATE heddle_slot SET heir = 0' },
    huge: {
      does: `INSERT INTO heddle_slot SELECT 100 + n FROM ${many}`,
      undone: 'DELETE FROM heddle_slot WHERE slot NOT BETWEEN 0 AND 63',
    },
  },
  heddle_copy: {
    malformed: {
      does: `INSERT INTO heddle_copy SELECT epoch, -1, '', '', '{', '', 'k', -1 FROM heddle_process`,
      undone: 'DELETE FROM heddle_copy',
    },
    foreign: {
      does: `INSERT INTO heddle_copy SELECT epoch, -1, 'evt_x', 'of.others', '${envelope.slice(1, -1)}', '{}', NULL, 0 FROM heddle_process`,
      undone: 'DELETE FROM heddle_copy',
    },
    huge: {
      does: `INSERT INTO heddle_copy SELECT epoch, -n, 'evt_x', 'of.others', '${envelope.slice(1, -1)}', '{}', NULL, 0 FROM heddle_process, ${many}`,
      undone: 'DELETE FROM heddle_copy',
    },
  },
})
