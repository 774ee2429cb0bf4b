import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeFragments } from './contract-fragments.ts'
import { describeStatements } from './contract-statements.ts'
import { describeTransactions } from './contract-transactions.ts'
import { describeValues } from './contract-values.ts'
import type { CreateDatabase } from './library.ts'

/** The behaviour of the tool `db` on every database. */
export function runDbContract(name: string, create: CreateDatabase): void {
  describe(`db contract on ${name}`, () => {
    describeStatements(create)
    describeValues(create)
    describeTransactions(create)
    describeFragments(create)

    test('healthCheck is true while the database answers', async (t) => {
      const db = await create(t)
      assert.equal(await db.healthCheck(), true)
    })
  })
}
