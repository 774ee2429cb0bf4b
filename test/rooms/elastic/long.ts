// node --import tsx test/rooms/elastic/long.ts: outages of the length that service.md and the defaults speak of, about five minutes.
import { Outage } from './outage.ts'

/** The default of EVENT_BUS_CLAIM_IDLE_MS. */
const CLAIM_IDLE_MS = 60_000
const REDIS_FROZEN_MS = 20_000
/** Longer than CLAIM_IDLE_MS. */
const REPLICA_FROZEN_MS = 90_000
/** Longer than a replica's name is kept for it. */
const NAME_LOST_MS = 17_000

async function main(): Promise<void> {
  const ends: (() => Promise<void>)[] = []
  const owner = {
    after: (end: () => Promise<void>): void => void ends.push(end),
    skip: (reason: string): never => {
      throw new Error(reason)
    },
  }
  const end = async (): Promise<void> => {
    for (const each of ends.splice(0).reverse()) await each()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void end().then(() => process.exit(130)))
  try {
    const outage = (await Outage.start(owner, CLAIM_IDLE_MS))!
    const scenarios: [string, () => Promise<void>][] = [
      ['Redis restarted with its append-only file', () => outage.restartRedis()],
      [`Redis frozen for ${REDIS_FROZEN_MS / 1000} s`, () => outage.freezeRedis(REDIS_FROZEN_MS)],
      ['PostgreSQL restarted', () => outage.restartPostgres()],
      [`a replica frozen for ${REPLICA_FROZEN_MS / 1000} s`, () => outage.freezeReplica(REPLICA_FROZEN_MS)],
    ]
    for (const [name, happen] of scenarios) {
      const { line, isWhole } = await outage.under(owner, happen)
      console.log(`${isWhole ? 'whole' : 'BROKEN'}  ${name}: ${line}`)
      if (!isWhole) process.exitCode = 1
    }
    const { code, said, isReplaced } = await outage.loseName(NAME_LOST_MS)
    const isClear = code === 78 && said !== '' && isReplaced
    console.log(
      `${isClear ? 'whole' : 'BROKEN'}  a replica whose name another process took meanwhile: exit code ${code}, ${said}`,
    )
    if (!isClear) process.exitCode = 1
  } finally {
    await end()
  }
}

void main()
