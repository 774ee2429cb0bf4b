import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { until } from '../../../support/until.ts'
import { post, type Seen, seen, seenOften } from './driving.ts'

async function letterOf(heddle: Heddle, eventId: string) {
  const { body } = await heddle.json('/dead-letters')
  return body.letters.find(({ event_id }: { event_id: string }) => event_id === eventId)
}

/** What becomes of an event whose subscriber fails. */
export async function failuresAreKept(t: TestContext, heddle: Heddle): Promise<void> {
  await t.test('the last failure goes to the listeners, then to the dead letters', async () => {
    const tag = 'dead, ü and €'
    const { id } = await post(heddle, '/publish', {
      event: 'failing',
      payload: { tag, failures: 9, secret: 's' },
    })
    const line = await until(
      () =>
        heddle.logs.find(({ msg, failure }) => msg === 'failure' && (failure as { event_id: string }).event_id === id),
      'the failure listener',
    )
    assert.deepEqual(line.failure, {
      event: 'failing',
      event_id: id,
      subscriber: 'bus.Watch',
      error: 'attempt 3 failed',
      attempts: 3,
    })
    assert.equal(line.isStored, false, 'listeners come before the store')
    const letters = await until(async () => {
      const { body } = await heddle.json('/dead-letters')
      return body.letters.length > 0 ? body.letters : undefined
    }, 'the letter')
    assert.equal(letters.length, 1)
    assert.equal(letters[0].event_id, id)
    assert.equal(letters[0].attempts, 3)
    assert.deepEqual(letters[0].payload_keys, ['tag', 'failures', 'secret'])
    assert.doesNotMatch(JSON.stringify(letters), /"s"/)
    const follow = await until(
      () => (seen(heddle, 'failure.seen') as Seen[]).find(({ data }) => data.of === id),
      'what the listener has published',
    )
    assert.equal(follow.event.parent_id, id, 'caused by the event that failed')

    // A replay brings the text as it was published, too.
    assert.equal((await post(heddle, `/dead-letters/${letters[0].id}/replay`)).done, true)
    await seenOften(heddle, 'failing', tag, 6)
    const again = await until(async () => (await heddle.json('/dead-letters')).body.letters[0], 'it failed again')
    await heddle.json(`/dead-letters/${again.id}`, { method: 'DELETE' })
  })

  await t.test('an Unrecoverable ends the attempts at once, however it is thrown', async () => {
    const attempts = { sync: 1, async: 1, subclass: 1, second: 2, cause: 4, 'among others': 4 }
    for (const [kind, expected] of Object.entries(attempts)) {
      const { id } = await post(heddle, '/publish', { event: 'hopeless', payload: { tag: kind, kind } })
      const letter = await until(() => letterOf(heddle, id), `the letter of ${kind}`)
      assert.equal(letter.attempts, expected, kind)
      // The message of a cause, and those of gathered errors, stand behind that of the error.
      assert.equal(
        letter.error,
        attempts[kind as keyof typeof attempts] === 4 ? `no use: ${kind}: inside` : `no use: ${kind}`,
      )
      assert.equal(letter.black_box, undefined)
      await seenOften(heddle, 'hopeless', kind, expected)
      assert.equal(seen(heddle, 'hopeless', kind).length, expected, kind)
      await heddle.json(`/dead-letters/${letter.id}`, { method: 'DELETE' })
    }
  })

  await t.test('an Unrecoverable of a subscriber in the primary does, too', async () => {
    const { id } = await post(heddle, '/publish', { event: 'hopeless.primary', payload: { tag: 'u' } })
    const letter = await until(() => letterOf(heddle, id), 'the letter')
    assert.deepEqual([letter.attempts, letter.error], [1, 'no use here either'])
    await seenOften(heddle, 'hopeless.primary', 'u', 1)
    assert.equal(seen(heddle, 'hopeless.primary', 'u').length, 1)
    await heddle.json(`/dead-letters/${letter.id}`, { method: 'DELETE' })
  })

  await t.test('a subscriber that does not finish in time has failed', async () => {
    const { id } = await post(heddle, '/publish', { event: 'hanging', payload: { tag: 'h' } })
    const line = await until(
      () =>
        heddle.logs.find(({ msg, failure }) => msg === 'failure' && (failure as { event_id: string }).event_id === id),
      'the time-out',
    )
    assert.match((line.failure as { error: string }).error, /did not finish within 100 ms/)
  })

  await t.test('an error with details that are no JSON, or from a thenable, is a failure like any other', async () => {
    for (const kind of ['sync', 'async', 'thenable']) {
      const { id } = await post(heddle, '/publish', { event: 'thrown', payload: { kind } })
      const line = await until(
        () =>
          heddle.logs.find(
            ({ msg, failure }) => msg === 'failure' && (failure as { event_id: string }).event_id === id,
          ),
        `the failure of ${kind}`,
        3000,
      )
      assert.equal((line.failure as { error: string }).error, `thrown ${kind}`)
    }
    assert.deepEqual(
      heddle.logs.filter(({ identity, level }) => identity === 'supervisor' && level >= 50),
      [],
      'no lane died of it',
    )
  })
}
