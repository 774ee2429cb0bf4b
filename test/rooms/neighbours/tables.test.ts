import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { type LogStore, STORES } from '../event-store/databases.ts'
import { isWell, lineOf, probe, type Seen } from './probe.ts'
import { deedsOf, FAULTS } from './tables.ts'

/** How long a neighbour holds a lock, milliseconds. */
const LOCKED_MS = 1500
/** How soon all is well again when the neighbour has gone, milliseconds. */
const WELL_MS = 30_000
const ENV = { EVENT_BUS_DRIVER: 'database', RDB_STATEMENT_TIMEOUT_MS: '4000', SHUTDOWN_TIMEOUT_MS: '2000' }

/** The service, which is started again where a cell says so. */
class Service {
  readonly #store: LogStore
  readonly #t: TestContext
  heddle!: Heddle
  #probes = 0

  constructor(t: TestContext, store: LogStore) {
    this.#t = t
    this.#store = store
  }

  async start(): Promise<void> {
    this.heddle = await this.#store.start(ENV)
  }

  probe(): Promise<Seen> {
    return probe(this.heddle, `probe ${this.#probes++}`)
  }

  /** What is accepted is delivered, or the process says what is wrong; what is refused is refused for now; nobody else's fault ends it. */
  async cell(name: string, seen: Seen): Promise<void> {
    this.#t.diagnostic(lineOf(name, seen))
    const { statuses, deliveredMs, reasons } = seen
    const { exitCode, signalCode } = this.heddle.process
    assert.deepEqual([exitCode, signalCode], [null, null], `${name}: the process has ended`)
    for (const status of statuses) assert.ok([200, 201, 503, 504, 0].includes(status), `${name}: ${status}`)
    if (deliveredMs === null) assert.ok(reasons.length > 0, `${name}: nothing says why nothing is delivered`)
  }

  /** With the neighbour gone. */
  async isWellAgain(name: string): Promise<void> {
    await until(async () => isWell(await this.probe()), `all well again after ${name}`, WELL_MS)
  }

  async restart(): Promise<void> {
    await this.heddle.stop()
    await this.start()
  }
}

/** Holds a table, or the file, for a while. */
async function lock(store: LogStore, table: string): Promise<() => Promise<void>> {
  if (store.server === null) {
    const database = new Database(store.path!, { timeout: 10_000 })
    database.exec('BEGIN IMMEDIATE')
    return async () => {
      database.exec('ROLLBACK')
      database.close()
    }
  }
  const { host, port, user, password, database } = store.server
  const client = new pg.Client({ host, port, user, password, database })
  client.on('error', () => {})
  await client.connect()
  await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
  return () => client.end()
}

for (const [name, storeOf] of STORES) {
  test(`neighbours in the database: what they do to each table leaves others alone, or is said (${name})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return
    const isFile = store.server === null
    const service = new Service(t, store)
    await service.start()
    await service.isWellAgain('the start')
    const tables = Object.entries(deedsOf(isFile))
    for (const [table, { undone, ...deeds }] of tables) {
      for (const fault of FAULTS) {
        const cell = `${table} × ${fault}`
        await store.rows(deeds[fault])
        await service.cell(cell, await service.probe())
        await store.rows(undone)
        await service.isWellAgain(cell)
      }
    }
    // Much is read at the start alone. A process that does not lapse holds up a start for half a minute: that has a test of its own.
    const all = tables.flatMap(([table, deeds]) => (table === 'heddle_member' ? [] : [deeds]))
    for (const fault of FAULTS) {
      for (const { [fault]: does } of all) await store.rows(does)
      await service.restart()
      await service.cell(`all tables × ${fault} × a start`, await service.probe())
      for (const { undone } of all) await store.rows(undone)
      await service.isWellAgain(`a start with what is ${fault}`)
    }
    for (const table of isFile ? ['the file'] : tables.map(([table]) => table)) {
      const cell = `${table} × locked`
      const release = await lock(store, table)
      const probing = service.probe()
      await new Promise((resolve) => setTimeout(resolve, LOCKED_MS))
      await release()
      await service.cell(cell, await probing)
      await service.isWellAgain(cell)
    }
    for (const [table] of tables) {
      const cell = `${table} × gone`
      await store.rows(`DROP TABLE ${table}${isFile ? '' : ' CASCADE'}`)
      await service.cell(cell, await service.probe())
      await service.restart()
      await service.isWellAgain(cell)
    }
    assert.equal(await service.heddle.stop(), 0)
  })
}
