import { z } from 'zod'
import { plugin } from '#heddle'
import { pause } from '../pause.ts'

/** Its lane dies between the first statement of a transaction and its end, with the database's write lock in hand. */
export default plugin(({ db, http }) => {
  async function leave({ delay_ms }: { delay_ms: number }) {
    await db.transaction(async (tx) => {
      await tx.execute('INSERT INTO chaos_torn (number) VALUES ($1)', [delay_ms])
      await pause(delay_ms)
      process.exit(42)
    })
  }

  http.addEndpoint('/chaos/faults/transaction', 'POST', leave, { body: z.object({ delay_ms: z.int() }) })
})
