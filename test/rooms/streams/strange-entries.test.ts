import assert from 'node:assert/strict'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { DOMAINS, post, seen, seenOften } from '../events/contract/driving.ts'
import { streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const STREAM = 'heddle:event:keyed'
const LAST = 'heddle:last:keyed/k0'
/** The last id that there can be. */
const END = '18446744073709551615-18446744073709551615'

testOnStreams(
  'what others write about the order of a key holds up none of its events',
  async ({ redis, server }, t) => {
    const env = { ...server.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
    const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 2, env })
    const publish = (tag: string, count = 2) =>
      post(heddle, '/publish-many', { event: 'keyed', count, keys: 1, payload: { tag } })
    await publish('before')
    await seenOften(heddle, 'keyed-ends', 'before', 2)
    let fields: string[] = []
    const isRead = async (): Promise<boolean> => {
      await publish('one to read', 1)
      const [entry] = (await redis.command('xrevrange', [STREAM, '+', '-', 'COUNT', 1])) as [id: string, string[]][]
      fields = entry?.[1] ?? []
      return entry !== undefined
    }
    await until(isRead, 'an entry is read before it is trimmed')
    assert.ok(await redis.command('exists', [LAST]), 'the name of the key’s last event')

    for (const last of ['none', '', '5', '1-x', END]) {
      await redis.command('set', [LAST, last])
      await publish(`last ${last}`)
      await seenOften(heddle, 'keyed-ends', `last ${last}`, 2)
    }
    // As many as a thread has at a time, each of which waits for one that never comes.
    const strange = [...fields.slice(0, fields.indexOf('a') < 0 ? fields.length : fields.indexOf('a')), 'a', END]
    await Promise.all(Array.from({ length: 2200 }, () => redis.command('xadd', [STREAM, '*', ...strange])))
    await publish('after them')
    await seenOften(heddle, 'keyed-ends', 'after them', 2)
    // Nothing more can be added, until the stream is begun anew, with smaller ids.
    await redis.command('xadd', [STREAM, END, ...fields])
    assert.equal((await publish('full')).refused.length, 2)
    await redis.command('del', [STREAM])
    await publish('anew')
    await until(() => seen(heddle, 'keyed-ends', 'anew').length >= 2, 'those of the new stream', 30_000)
    assert.equal(seen(heddle, 'keyed-ends', 'anew').length, 2)
  },
)
