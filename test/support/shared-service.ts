import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { type Heddle, type Owner, type StartOptions, startHeddle } from './heddle.ts'
import { endWithProcess } from './process-end.ts'

/** What ends with a file's tests rather than with the first that asks for it. Call it in their `describe`, or where it stands for the file. */
export function suiteOwner(): Owner {
  const ends: (() => Promise<void>)[] = []
  after(async () => {
    for (const end of ends.reverse()) await end()
  })
  return { after: (end) => void ends.push(end) }
}

/** One service, and the suites that wish for it. */
interface Wish {
  suites: number
  starting?: Promise<Heddle>
  service?: Heddle
  readonly ends: (() => Promise<void>)[]
  readonly checks: ((service: Heddle) => void)[]
}

const wishes = new Map<string, Wish>()

/**
 * One service for all tests of a `describe` or a file. Who wishes for the same options in the same process gets the same one: it is asked and looked at, never
 * killed or configured. After the last of them it must end with code 0 when it is told to stop.
 * @param start its options, or what starts one that nobody else gets
 * @param check called when it has ended
 * @returns how the tests get it
 */
export function shareService(
  start: StartOptions | ((owner: Owner) => Promise<Heddle>),
  check: (service: Heddle) => void = () => {},
): () => Heddle {
  const wish = wishFor(typeof start === 'function' ? `own ${wishes.size}` : JSON.stringify(start))
  wish.suites++
  wish.checks.push(check)
  before(async () => {
    const owner: Owner = { after: (end) => void wish.ends.push(end) }
    wish.starting ??= typeof start === 'function' ? start(owner) : startHeddle(owner, start)
    wish.service = await wish.starting
  })
  after(async () => {
    wish.suites--
    if (wish.suites > 0) return
    try {
      assert.equal(await wish.service!.stop(), 0, 'the exit code')
      for (const check of wish.checks) check(wish.service!)
    } finally {
      await endAll(wish)
    }
  })
  return () => wish.service!
}

function wishFor(key: string): Wish {
  const found = wishes.get(key)
  if (found !== undefined) return found
  const wish: Wish = { suites: 0, ends: [], checks: [] }
  wishes.set(key, wish)
  // Where a pattern chooses tests, suites without one do not run.
  endWithProcess(() => endAll(wish))
  return wish
}

async function endAll({ ends }: Wish): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end()
}
