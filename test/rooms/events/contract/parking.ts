import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Heddle } from '../../../support/heddle.ts'
import { until } from '../../../support/until.ts'
import { LANES, post, seen, seenOften } from './driving.ts'

const FOLLOWERS = 20

/** What becomes of the events behind a dead letter of a subscriber with `onDead: 'park'`. */
export async function lettersHoldTheirKeys(t: TestContext, heddle: Heddle): Promise<void> {
  let mendings = 0
  const mend = async (isMended: boolean) => {
    await post(heddle, '/publish', { event: 'parking.mended', payload: { isMended } })
    mendings += LANES
    await seenOften(heddle, 'parking-mended', undefined, mendings)
  }
  const publish = async (tag: string, from: number, count: number) => {
    for (let n = from; n < from + count; n++)
      await post(heddle, '/publish', { event: 'parking', payload: { tag, n, isBad: n === 0 }, options: { key: tag } })
  }
  const handled = (tag: string) => seen(heddle, 'parking', tag).map(({ n, isFailing }) => (isFailing ? 'fails' : n))
  const letterFor = (tag: string, but?: string) =>
    until(async () => {
      const { letters } = (await heddle.json('/dead-letters')).body
      return letters.find(
        ({ id, event, parked }: { id: string; event: string; parked?: true }) =>
          event === 'parking' && parked === true && id !== but,
      )
    }, `the letter of ${tag}`)
  const numbers = (first: number, count: number) => Array.from({ length: count }, (_, n) => first + n)

  await t.test('what follows a dead letter with its key waits, and is handled after its replay, in order', async () => {
    await publish('parked', 0, FOLLOWERS)
    const letter = await letterFor('parked')
    assert.equal(letter.attempts, 2)
    await publish('parked', FOLLOWERS, FOLLOWERS)
    await publish('other key', 1, 3)
    await seenOften(heddle, 'parking', 'other key', 3)
    await seenOften(heddle, 'parking-too', 'parked', 2 * FOLLOWERS)
    assert.deepEqual(handled('parked'), ['fails', 'fails'])

    await post(heddle, `/dead-letters/${letter.id}/replay`)
    const again = await letterFor('parked', letter.id)
    assert.deepEqual(handled('parked'), ['fails', 'fails', 'fails', 'fails'], 'it has failed again, and they wait')

    await mend(true)
    assert.equal((await post(heddle, `/dead-letters/${again.id}/replay`)).done, true)
    await publish('parked', 2 * FOLLOWERS, 5)
    await until(() => handled('parked').length >= 5 + 2 * FOLLOWERS + 4, 'the followers')
    assert.deepEqual(handled('parked').slice(4), numbers(0, 2 * FOLLOWERS + 5))
    await seenOften(heddle, 'parking-too', 'parked', 2 * FOLLOWERS + 5)
    const others = seen(heddle, 'parking-too', 'parked').map(({ n }) => n)
    assert.deepEqual(others, numbers(0, 2 * FOLLOWERS + 5), 'each once')
    await mend(false)
  })

  await t.test('what follows a dead letter with its key goes on when the letter is deleted', async () => {
    await publish('deleted', 0, FOLLOWERS)
    const letter = await letterFor('deleted')
    await seenOften(heddle, 'parking-too', 'deleted', FOLLOWERS)
    assert.deepEqual(handled('deleted'), ['fails', 'fails'])
    const answer = await heddle.json(`/dead-letters/${letter.id}`, { method: 'DELETE' })
    assert.equal(answer.body.done, true)
    await publish('deleted', FOLLOWERS, 5)
    await until(() => handled('deleted').length >= FOLLOWERS + 6, 'the followers')
    assert.deepEqual(handled('deleted').slice(2), numbers(1, FOLLOWERS + 4))
  })
}
