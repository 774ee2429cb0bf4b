/** Holds the simulated server against a real PostgreSQL: what a run has done is done there again, statement by statement. */
import pg from 'pg'
import type { SqlValue } from '../../../src/contracts/db.ts'
import { DRAWING_TRANSACTIONS } from '../../../src/runtime/event-store/server-tables.ts'
import { STEPS } from '../batch.ts'
import { STORED_ENGINE } from './batch.ts'
import { StoredRun } from './run.ts'
import type { Outcome, Params, Recorded, SimulatedServer } from './server.ts'

/** So long a statement waits for another one of the run at most, which would be a fault of the comparison. */
const SETTINGS =
  'SET statement_timeout = 10000; SET search_path = own, pg_catalog; SET enable_seqscan = off; SET jit = off'

/** What the server has by itself, and a run has otherwise: chance, time, numbers and the hash of a key. */
const OWN = `CREATE SCHEMA own;
  CREATE FUNCTION own.clock_timestamp() RETURNS bigint LANGUAGE sql AS $$ SELECT CAST(current_setting('own.now') AS bigint) $$;
  CREATE FUNCTION own.nextval(text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE numbers text[] := string_to_array(current_setting('own.numbers'), ',');
    BEGIN
      PERFORM set_config('own.numbers', array_to_string(numbers[2:], ','), false);
      RETURN numbers[1];
    END $$;
  CREATE FUNCTION own.hashtext(text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
    DECLARE hash bigint := 7;
    BEGIN
      IF $1 IS NULL THEN RETURN NULL; END IF;
      FOR n IN 1 .. length($1) LOOP hash := (hash * 31 + ascii(substr($1, n, 1))) & 4294967295; END LOOP;
      RETURN CASE WHEN hash >= 2147483648 THEN hash - 4294967296 ELSE hash END;
    END $$`

const TABLES = [
  'delivery',
  'group',
  'parked',
  'dead',
  'member',
  'member_group',
  'slot',
  'log',
  'limit',
  'permit',
  'paused',
  'report',
  'chunk',
].map((name) => `heddle_${name}`)

/** What they answer is of the server alone, or of nobody. */
const OF_SERVER = [
  DRAWING_TRANSACTIONS,
  'SELECT coalesce(pg_sequence_last_value',
  'SELECT pg_notify',
  'SELECT i.indisvalid',
  'SET LOCAL',
  'SELECT pg_advisory_xact_lock',
]

/** A lease ends at a number here, as in the simulation. */
const asNumbers = (sql: string): string =>
  sql
    .replaceAll('CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)', 'clock_timestamp()')
    .replace(/clock_timestamp\(\) \+ interval '(\d+) s'/g, 'clock_timestamp() + $1000')
    .replace('TIMESTAMPTZ', 'BIGINT')

/** Numbers of a row that are drawn by the table itself: the simulation draws none that it does not use. */
const IDENTITIES: Record<string, string> = {
  'INSERT INTO heddle_group ': 'heddle_group_id_seq',
  'INSERT INTO heddle_member ': 'heddle_member_id_seq',
}

/** A page ends with a row of the numbers of the server itself. */
const isOfServer = (row: Record<string, unknown>): boolean => Number(row.slot) === -1 && Number(row.thread) === 0

function shown(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'boolean') return String(Number(value))
  // PostgreSQL writes blanks into the JSON that it makes.
  return /^\[\d+, /.test(String(value)) ? String(value).replaceAll(', ', ',') : String(value)
}

function shownRow(row: Record<string, unknown>): string {
  const left = isOfServer(row) ? ['envelope', 'payload'] : Object.keys(row)
  return left
    .sort()
    .map((name) => `${name}=${shown(row[name])}`)
    .join(' ')
}

function shownRows(rows: readonly unknown[], sql: string): string[] {
  const all = rows.map((row) => shownRow(row as Record<string, unknown>))
  return /ORDER BY/.test(sql) && !/SELECT DISTINCT|^\s*UPDATE/.test(sql) ? all : all.sort()
}

type Begun = Recorded & { what: 'begun' }

export interface Compared {
  /** How many statements were compared. */
  statements: number
  /** What differed first; null: nothing. */
  difference: string | null
}

class Comparison {
  readonly #client: pg.Client
  statements = 0

  constructor(client: pg.Client) {
    this.#client = client
  }

  /** @returns what differs */
  async step(recorded: Recorded): Promise<string | null> {
    switch (recorded.what) {
      case 'BEGIN':
      case 'COMMIT':
      case 'ROLLBACK':
        await this.#client.query(recorded.what)
        return null
      case 'begun':
        return this.#begun(recorded)
      case 'seen':
        await this.#client.query('DELETE FROM heddle_delivery WHERE seq = ANY($1::bigint[])', [recorded.deleted])
        for (const row of recorded.inserted) await this.#insert(recorded.columns, row)
        return null
      case 'statement':
        return this.#compare(recorded)
    }
  }

  async #prepare(numbers: readonly number[], nowMs: number): Promise<void> {
    await this.#client.query("SELECT set_config('own.numbers', $1, false), set_config('own.now', $2, false)", [
      numbers.join(','),
      String(nowMs),
    ])
  }

  /** What it inserts is there when the run sees it, with the numbers and slots of the run. */
  async #begun({ sql, params, numbers, columns, rows: wantedRows, nowMs }: Begun): Promise<string | null> {
    this.statements++
    await this.#prepare(numbers, nowMs)
    await this.#client.query('BEGIN')
    await this.#client.query(asNumbers(sql), [...params])
    const { rows } = await this.#client.query(
      `SELECT seq, ${columns.join(', ')} FROM heddle_delivery WHERE seq = ANY($1::bigint[]) ORDER BY seq`,
      [numbers],
    )
    await this.#client.query('ROLLBACK')
    const wanted = wantedRows.map(
      (row): Record<string, unknown> => Object.fromEntries(row.map((value, n) => [columns[n]!, value])),
    )
    // The groups of one event may get its rows in any order. Without a key the slot is chance.
    const shownAll = (all: readonly Record<string, unknown>[]): string[] =>
      all.map(({ seq: _, slot, ...row }) => shownRow(row.key === null ? row : { ...row, slot })).sort()
    const eventsOf = (all: readonly Record<string, unknown>[]): string[] => all.map(({ event_id }) => String(event_id))
    return (
      this.#differs('the order of new rows', [], eventsOf(wanted), eventsOf(rows)) ??
      this.#differs(sql, params, shownAll(wanted), shownAll(rows))
    )
  }

  #insert(columns: readonly string[], row: readonly SqlValue[]): Promise<unknown> {
    const marks = row.map((_, n) => `$${n + 1}`).join(', ')
    return this.#client.query(`INSERT INTO heddle_delivery (seq, ${columns.join(', ')}) VALUES (${marks})`, [...row])
  }

  #differs(sql: string, params: Params, wanted: readonly string[], found: readonly string[]): string | null {
    if (wanted.join('\n') === found.join('\n')) return null
    return `${sql}\n${JSON.stringify(params)}\nsimulated:\n${wanted.join('\n')}\nPostgreSQL:\n${found.join('\n')}`
  }

  async #compare(recorded: Recorded & { what: 'statement' }): Promise<string | null> {
    const { sql, params, outcome, numbers, slots, nowMs } = recorded
    // What was taken back is noted with the last number that was drawn, and the run draws its own.
    if (OF_SERVER.some((begins) => sql.startsWith(begins)) || sql.includes('heddle_cancel')) return null
    await this.#prepare(numbers, nowMs)
    const [, sequence] = Object.entries(IDENTITIES).find(([begins]) => sql.startsWith(begins)) ?? []
    const id = (outcome?.rows[0] as { id?: number } | undefined)?.id
    if (sequence !== undefined && id !== undefined)
      await this.#client.query(`SELECT setval('${sequence}', $1, false)`, [id])
    let found: Outcome | null
    try {
      const { rows, rowCount } = await this.#client.query(asNumbers(sql), [...params])
      found = { rows, rowCount: rowCount ?? 0 }
      for (const { seq, slot } of slots)
        await this.#client.query('UPDATE heddle_delivery SET slot = $1 WHERE seq = $2', [slot, seq])
    } catch (error) {
      found = null
      if (outcome !== null) return `${sql}\n${JSON.stringify(params)}\n${String(error)}`
    }
    this.statements++
    if (outcome === null || found === null)
      return outcome === found ? null : `${sql}: ${outcome === null ? 'only simulated' : 'only real'} it fails`
    const isChange = /^\s*(UPDATE|DELETE|INSERT)/.test(sql)
    const counts = isChange ? [[`${outcome.rowCount} rows`], [`${found.rowCount} rows`]] : [[], []]
    return this.#differs(
      sql,
      params,
      [...counts[0]!, ...shownRows(outcome.rows, sql)],
      [...counts[1]!, ...shownRows(found.rows, sql)],
    )
  }

  /** What is left in the tables. */
  async left(server: SimulatedServer): Promise<string | null> {
    for (const table of TABLES) {
      const wanted = shownRows(server.all(`SELECT * FROM ${table}`), '')
      const { rows } = await this.#client.query(`SELECT * FROM ${table}`)
      const difference = this.#differs(table, [], wanted, shownRows(rows, ''))
      if (difference !== null) return difference
    }
    return null
  }
}

/** Runs a seed, and then does the same on an empty database. */
export async function compareRun(seed: number, access: pg.ClientConfig): Promise<Compared> {
  const recorded: Recorded[] = []
  const run = new StoredRun(STORED_ENGINE, {
    log: 'postgres',
    seed,
    steps: STEPS,
    record: (each) => recorded.push(each),
  })
  const { finding } = await run.execute()
  if (finding !== null) return { statements: 0, difference: finding }
  const client = new pg.Client(access)
  await client.connect()
  try {
    await client.query(OWN)
    await client.query(SETTINGS)
    const comparison = new Comparison(client)
    let difference: string | null = null
    for (const each of recorded) {
      difference = await comparison.step(each)
      if (difference !== null) break
    }
    difference ??= await comparison.left(run.database as SimulatedServer)
    return { statements: comparison.statements, difference }
  } finally {
    await client.end()
  }
}
