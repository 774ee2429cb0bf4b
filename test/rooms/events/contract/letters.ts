import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { until } from '../../../support/until.ts'
import { post, seen, seenOften } from './driving.ts'

interface Letter {
  id: string
  event_id: string
  payload_keys: string[]
  original_keys?: string[]
  replay?: { outcome: string; error?: string; letter?: string }
}

const find = async (heddle: Heddle, page: object): Promise<Letter[]> =>
  (await post(heddle, '/dead-letters/find', page)).letters

/** Many dead letters at a time, and their payloads. */
export async function lettersAreManaged(t: TestContext, heddle: Heddle, keepsReplays: boolean): Promise<void> {
  const fail = async (tag: string): Promise<string> =>
    (await post(heddle, '/publish', { event: 'failing', payload: { tag, failures: 9 } })).id
  const lettersOf = (ids: string[]) =>
    until(async () => {
      const letters = (await find(heddle, { event: 'failing' })).filter(({ event_id }) => ids.includes(event_id))
      return letters.length === ids.length ? letters : undefined
    }, 'the letters')

  await t.test('letters are listed and replayed by what they are', async () => {
    const before = new Date()
    const events = [await fail('many'), await fail('many'), await fail('many')]
    const letters = await lettersOf(events)
    assert.equal((await find(heddle, { event: 'failing', subscriber: 'bus.Watch' })).length, 3)
    assert.equal((await find(heddle, { event: 'failing', error: '3 fail', since: before.toISOString() })).length, 3)
    assert.deepEqual(await find(heddle, { event: 'failing', error: 'another' }), [])
    assert.deepEqual(await find(heddle, { event: 'failing', until: before.toISOString() }), [])
    const [first] = letters
    assert.deepEqual(
      (await find(heddle, { ids: [first!.id] })).map(({ id }) => id),
      [first!.id],
    )
    assert.equal((await post(heddle, '/dead-letters/replay', { error: 'another' })).replayed, 0)
    assert.equal((await post(heddle, '/dead-letters/replay', { event: 'failing', limit: 2 })).replayed, 2)
    await seenOften(heddle, 'failing', 'many', 9 + 6)
    const again = await until(async () => {
      const now = await lettersOf(events)
      return now.filter(({ id }) => letters.some((old) => old.id === id)).length === 1 ? now : undefined
    }, 'two new letters')
    const told = await find(heddle, { ids: letters.map(({ id }) => id), replayed: true })
    assert.equal(told.length, keepsReplays ? 2 : 0)
    for (const { event_id, replay } of told) {
      assert.deepEqual([replay!.outcome, replay!.error], ['failed', 'attempt 3 failed'])
      assert.equal(replay!.letter, again.find((letter) => letter.event_id === event_id)!.id)
    }
    for (const { id } of again) await heddle.json(`/dead-letters/${id}`, { method: 'DELETE' })
  })

  if (!keepsReplays) {
    await t.test('an edit is refused, and the letter stays as it is', async () => {
      const [letter] = await lettersOf([await fail('to edit')])
      const { id } = letter!
      assert.equal((await post(heddle, '/dead-letters/edit', { id, payload: {} })).code, 'EVENT_OPTIONS_INVALID')
      assert.equal((await post(heddle, '/dead-letters/payload', { id })).payload.tag, 'to edit')
      await heddle.json(`/dead-letters/${id}`, { method: 'DELETE' })
      assert.equal((await post(heddle, '/dead-letters/edit', { id, payload: {} })).done, false)
    })
    return
  }

  await t.test('an edited letter is replayed with its new payload, and told from the original', async () => {
    const event = await fail('to edit')
    const [letter] = await lettersOf([event])
    const { id } = letter!
    const edit = (payload: unknown) => post(heddle, '/dead-letters/edit', { id, payload })
    const payload = async () => (await post(heddle, '/dead-letters/payload', { id })).payload
    assert.equal((await payload()).tag, 'to edit')
    assert.equal((await edit([1])).code, 'EVENT_PAYLOAD_INVALID')
    assert.equal((await edit({ tag: 'edited once' })).done, true)
    assert.equal((await edit({ tag: 'edited, ü', note: 'n' })).done, true)
    assert.deepEqual(await payload(), { tag: 'edited, ü', note: 'n' })
    const [edited] = await find(heddle, { ids: [id] })
    assert.deepEqual(
      [edited!.payload_keys, edited!.original_keys],
      [
        ['tag', 'note'],
        ['tag', 'failures'],
      ],
    )
    assert.equal((await post(heddle, '/dead-letters/replay', { ids: [id] })).replayed, 1)
    await seenOften(heddle, 'failing', 'edited, ü', 1)
    assert.equal(seen(heddle, 'failing', 'edited, ü')[0]!.event.id, event)
    const isTold = async () => (await find(heddle, { ids: [id], replayed: true }))[0]?.replay?.outcome === 'done'
    await until(isTold, 'the outcome')
    await heddle.json(`/dead-letters/${id}`, { method: 'DELETE' })
    assert.equal((await post(heddle, '/dead-letters/edit', { id, payload: {} })).done, false)
    assert.equal(await payload(), null)
  })
}
