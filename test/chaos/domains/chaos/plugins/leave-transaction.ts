import { z } from 'zod'
import { Plugin, type Tools } from '#heddle'
import { pause } from '../pause.ts'

/** Its lane dies between the first statement of a transaction and its end, with the database's write lock in hand. */
export default class LeaveTransaction extends Plugin {
  #db
  #http

  constructor({ db, http }: Tools) {
    super()
    this.#db = db
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/chaos/faults/transaction', 'POST', this.leave, { body: z.object({ delay_ms: z.int() }) })
  }

  async leave({ delay_ms }: { delay_ms: number }) {
    await this.#db.transaction(async (tx) => {
      await tx.execute('INSERT INTO chaos_torn (number) VALUES ($1)', [delay_ms])
      await pause(delay_ms)
      process.exit(42)
    })
  }
}
