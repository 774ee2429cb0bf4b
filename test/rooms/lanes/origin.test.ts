import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'
import { allUp, boxesOf, deathsIn } from './deadly.ts'

const DOMAINS = ['../../fixtures/frameless', '../../../domains'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)
/** Each ends a thread after the answer, and leaves no frame of the plugin. */
const WAYS = { socket: /ECONNREFUSED/, timer: /a text from a timer/, rejection: /a text that was/, file: /ENOENT/ }

describe('a death that leaves no frame of a plugin', () => {
  const service = shareService((t) => startHeddle(t, { domains: DOMAINS }))

  for (const [n, [way, message]] of Object.entries(WAYS).entries()) {
    test(`is the handler's that had begun it: ${way}`, async () => {
      const heddle = service()
      assert.equal((await heddle.json(`/fall-apart/${way}`)).status, 200)
      await until(() => deathsIn(heddle).length === n + 1, 'the death')
      const [box] = await boxesOf(heddle)
      assert.match(box!.message, message)
      assert.deepEqual(box!.guilty, {
        plugin: 'blind.FallApart',
        handler: 'GET /fall-apart/:way',
        line: null,
        evidence: 'origin',
      })
      await allUp(heddle)
    })
  }
})
