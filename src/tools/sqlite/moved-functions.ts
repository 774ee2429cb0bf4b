// The functions of SQLite that tell the time, where a test moves it.
import type BetterSqlite3 from 'better-sqlite3'
import { Database } from '../../stores/sqlite/driver.ts'

/** Each with the place of its time among its arguments, which may be left out. */
const FUNCTIONS = { date: 0, time: 0, datetime: 0, julianday: 0, unixepoch: 0, strftime: 1 } as const
/** The keywords, each with the function that it is. */
const KEYWORDS = { current_date: 'date', current_time: 'time', current_timestamp: 'datetime' } as const
/** A modifier that may stand where the time is left out. */
const SUBSECONDS = ['subsec', 'subsecond']

const lower = (arg: unknown): string => String(arg).toLowerCase()
const moved = (time: unknown): unknown => (lower(time) === 'now' ? new Date().toISOString() : time)

/** From now on, what SQL of this connection calls `now` is the time that the test has moved. */
export function moveFunctions(database: BetterSqlite3.Database): void {
  const plain = new Database(':memory:')
  const ask = (name: string, given: readonly unknown[]): unknown =>
    plain
      .prepare(`SELECT ${name}(${given.map(() => '?').join()})`)
      .pluck()
      .safeIntegers()
      .get(...given)
  const options = { varargs: true, deterministic: true }
  for (const [name, at] of Object.entries(FUNCTIONS))
    database.function(name, options, (...args: unknown[]) => {
      if (args.length === at || SUBSECONDS.includes(lower(args[at]))) args.splice(at, 0, 'now')
      return ask(
        name,
        args.map((arg, place) => (place === at ? moved(arg) : arg)),
      )
    })
  database.function('timediff', options, (...args: unknown[]) => ask('timediff', args.map(moved)))
  for (const [keyword, name] of Object.entries(KEYWORDS))
    database.function(keyword, { deterministic: true }, () => ask(name, [moved('now')]))
}
