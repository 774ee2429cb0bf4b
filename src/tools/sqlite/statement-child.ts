// The entry of a process that runs heavy statements, one at a time. It is killed where a statement takes too long: SQLite's log makes
// that harmless. Arguments: the path of the database, `synchronous`, and `moved` where a test moves the time.
import { Worker } from 'node:worker_threads'
import { moveTime, openTime, showTime } from '../../core/schedule/moved-time.ts'
import { SqliteConnection } from './connection.ts'
import { toDbError, whenFree } from './failure.ts'
import { type Answer, failed, type Order, packOutcome, unpackParams } from './heavy-statements.ts'

/** While a statement runs, this thread hears nothing of its parent's end. */
const GUARD = `setInterval(() => { if (process.ppid !== ${process.ppid}) process.kill(process.pid, 'SIGKILL') }, 500)`

const [path, synchronous, moved] = process.argv.slice(2) as [string, 'NORMAL' | 'FULL', 'moved'?]
if (moved !== undefined) {
  openTime()
  showTime()
}
new Worker(GUARD, { eval: true, execArgv: [], stdout: false, stderr: false }).unref()
const connection = new SqliteConnection(path, synchronous)

process.on('disconnect', () => process.exit(0))
process.on('message', async (order: Order) => process.send!(await perform(order)))
// Something that was preloaded may have let go of it.
process.channel!.ref()
process.send!({})

async function perform(order: Order): Promise<Answer> {
  if (order.movedMs !== undefined) moveTime(order.movedMs)
  try {
    switch (order.action) {
      case 'begin':
        await whenFree(() => connection.begin())
        return {}
      case 'commit':
        connection.commit()
        return {}
      case 'rollback':
        connection.rollback()
        return {}
      case 'run':
        return { outcome: packOutcome(await whenFree(() => connection.run(order.sql!, unpackParams(order.params!)))) }
    }
  } catch (thrown) {
    const { kind, message } = toDbError(thrown)
    return failed(kind, message)
  }
}
