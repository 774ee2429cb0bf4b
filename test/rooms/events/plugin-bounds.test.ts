import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { shareService } from '../../support/shared-service.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { post } from '../../support/started-service.ts'

const NAMES = 50
const SUBSCRIPTIONS = 40

const PLUGIN = (name: string) => `export default class ${name} {
  constructor({ http, event_bus }) {
    const leave = []
    const tried = async (count, attempt) => {
      const codes = {}
      let message = ''
      for (let n = 0; n < count; n++) {
        try { await attempt(n) } catch (error) { codes[error.code] = (codes[error.code] ?? 0) + 1; message = error.message }
      }
      return { codes, message }
    }
    http.addEndpoint('/${name}/publish', 'POST', ({ prefix, count }) =>
      tried(count, (n) => event_bus.publish(prefix + n, {})))
    http.addEndpoint('/${name}/subscribe', 'POST', ({ prefix, count }) =>
      tried(count, (n) => leave.push(event_bus.subscribe(prefix + n, () => {}))))
    http.addEndpoint('/${name}/leave', 'POST', () => { for (const each of leave.splice(0)) each(); return {} })
    http.addEndpoint('/${name}/topology', 'GET', () => event_bus.getTopology())
  } }`

for (const driver of ['in_process', 'keyvalue_streams']) {
  describe(`a plugin that takes more than its share of events, ${driver}`, () => {
    const service = shareService(async (owner) => {
      const redis =
        driver === 'in_process' ? null : await redisServer({ after: (end) => owner.after(end), skip: () => {} })
      return startHeddle(owner, {
        domains: [
          await folderOf(owner, { 'a/plugins/greedy.ts': PLUGIN('Greedy'), 'a/plugins/modest.ts': PLUGIN('Modest') }),
          SYSTEM_ROUTES,
        ],
        lanes: 1,
        env: {
          EVENT_BUS_DRIVER: redis === null ? 'in_process' : driver,
          EVENT_BUS_MAX_NAMES: String(NAMES),
          EVENT_BUS_MAX_SUBSCRIPTIONS: String(SUBSCRIPTIONS),
          ...redis?.env,
        },
      })
    })
    const topology = async () => Object.keys((await service().json('/Modest/topology')).body)

    it('publishes so many different names; others notice nothing, and the topology stays small', async () => {
      const { codes, message } = await post(service(), '/Greedy/publish', { prefix: 'greedy.', count: 500 })
      assert.deepEqual(codes, { EVENT_NAMES_LIMIT: 450 })
      assert.match(
        message,
        /^a\.Greedy has published 50 different events, and greedy\.499 is one more than EVENT_BUS_MAX_NAMES/,
      )
      const known = await post(service(), '/Greedy/publish', { prefix: 'greedy.', count: NAMES })
      assert.deepEqual(known.codes, {}, 'what it has published it may publish again')
      const others = await post(service(), '/Modest/publish', { prefix: 'greedy.4', count: 10 })
      assert.deepEqual(others.codes, {})
      const names = (await topology()).filter((name) => name.startsWith('greedy.'))
      // 40 to 49 were known.
      assert.equal(names.length, NAMES)
    })

    it('subscribes so often, and again when it has left', async () => {
      const { codes, message } = await post(service(), '/Greedy/subscribe', { prefix: 'heard.', count: 100 })
      assert.deepEqual(codes, { EVENT_SUBSCRIPTIONS_LIMIT: 100 - SUBSCRIPTIONS })
      assert.match(message, /^a\.Greedy has 40 subscriptions in this thread, and the one to heard\.99 /)
      const others = await post(service(), '/Modest/subscribe', { prefix: 'heard.', count: SUBSCRIPTIONS })
      assert.deepEqual(others.codes, {})
      await post(service(), '/Modest/leave')
      await post(service(), '/Greedy/leave')
      for (let round = 0; round < 3; round++) {
        const again = await post(service(), '/Greedy/subscribe', { prefix: `round.${round}.`, count: SUBSCRIPTIONS })
        assert.deepEqual(again.codes, {})
        await post(service(), '/Greedy/leave')
      }
      const left = (await topology()).filter((name) => /^(heard|round)\./.test(name))
      assert.deepEqual(left, [], 'names without subscribers and emitters are forgotten')
    })
  })
}
