import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AMBIGUOUS, BAD_CHUNKS, bytesOf, isHeld, isMisread, isValid, type Shape } from '../rooms/hostile/shapes.ts'
import { TARGET_DOMAINS } from '../rooms/hostile/target.ts'
import { ask, jsonOf, RawConnection, requestText } from '../support/raw-client.ts'
import { assertAnswers, shareHeddle } from '../support/shared-process.ts'

const heddle = shareHeddle({ env: { DOMAINS_DIR: TARGET_DOMAINS } })
/** Closed by whoever refuses it: what waits for a body is cut off after 7 s at the earliest. */
const CLOSED_WITHIN_MS = 5000
/** The library closes a silent connection after some 12 s, the runtime answers 408 after 7; a busy machine adds its own. */
const HELD_MAX_MS = 20_000

/** Who reads the request: a handler that answers at once, one on another thread, none at all, and one that expects no body. */
const FRONTS = ['POST /p/echo', 'POST /w/echo', 'POST /nowhere', 'GET /p/echo', 'PUT /p/say'] as const

/** Who reads a chunked body. */
const READERS = ['POST /p/echo', 'POST /w/echo', 'PUT /p/echo'] as const

/** How the bytes come: in one write, the head alone first, or what is smuggled in alone at the end. */
const WAYS = ['at once', 'head first', 'smuggled later'] as const

/** What is smuggled in counts its runs under a key of its own. */
let smuggledCount = 0
const unchecked: { key: string; what: string }[] = []

interface Outcome {
  /** Everything that came. */
  answer: string
  /** Within the time allowed, counted from the last byte sent. */
  isClosed: boolean
}

/** Sends a shape and a request behind it, and waits for the connection to be closed. */
async function send(
  shape: Shape,
  front: string,
  way: (typeof WAYS)[number],
  closedWithinMs = CLOSED_WITHIN_MS,
): Promise<Outcome> {
  const key = `smuggled-${smuggledCount++}`
  unchecked.push({ key, what: `${shape.name}, ${front}, ${way}` })
  const { head, body } = bytesOf(shape, front)
  const smuggled = requestText('GET', `/${front.includes('/w/') ? 'w' : 'p'}/count/${key}`)
  const connection = await RawConnection.open(heddle.port)
  const writes = {
    'at once': [Buffer.concat([head, body, smuggled])],
    'head first': [head, Buffer.concat([body, smuggled])],
    'smuggled later': [Buffer.concat([head, body]), smuggled],
  }[way]
  for (const [n, bytes] of writes.entries()) {
    // Long enough for what was sent to arrive alone; nothing tells from outside that it was read.
    if (n > 0) await new Promise((resolve) => setTimeout(resolve, 5))
    await connection.send(bytes)
  }
  const isClosed = await connection.closed(closedWithinMs).then(
    () => true,
    () => false,
  )
  const answer = connection.rest.toString('latin1')
  connection.drop()
  return { answer, isClosed }
}

async function sendAndClose(shape: Shape, front: string, way: (typeof WAYS)[number], pattern: RegExp): Promise<void> {
  const outcome = await send(shape, front, way)
  assertOneAnswer(outcome, pattern, `${shape.name}, ${front}, ${way}`)
  assert.ok(outcome.isClosed, `open after ${CLOSED_WITHIN_MS} ms: ${shape.name}, ${front}, ${way}\n${outcome.answer}`)
}

/** At once: each takes some milliseconds, and knows nothing of the others. */
async function sendEachWay(
  shape: Shape,
  fronts: readonly string[],
  ways: readonly (typeof WAYS)[number][],
  pattern: RegExp,
): Promise<void> {
  await Promise.all(fronts.flatMap((front) => ways.map((way) => sendAndClose(shape, front, way, pattern))))
}

function assertOneAnswer({ answer }: Outcome, pattern: RegExp, what: string): void {
  assert.match(answer, pattern, what)
  assert.ok(answersIn(answer) <= 1, `${what}: more than one answer\n${answer}`)
}

const answersIn = (text: string): number => text.match(/HTTP\/1\.1 \d{3} /g)?.length ?? 0

async function assertNothingRan(): Promise<void> {
  for (const { key, what } of unchecked.splice(0)) {
    assert.equal(
      jsonOf(await ask(heddle.port, 'GET', `/w/state/${key}:runs`)).data,
      null,
      `the smuggled request ran: ${what}`,
    )
  }
  await assertAnswers(heddle.port)
}

/** Of all shapes that are held, sent at once with the first that is asked for: each takes as long as the library or the runtime waits. */
let outcomesOfHeld: Map<Shape, Promise<Outcome>> | undefined

async function assertHeldAreCutOff(shapes: readonly Shape[]): Promise<void> {
  outcomesOfHeld ??= new Map(
    [...AMBIGUOUS, ...BAD_CHUNKS]
      .filter(isHeld)
      .map((shape) => [shape, send(shape, FRONTS[0], 'at once', HELD_MAX_MS)]),
  )
  await Promise.all(outcomesOfHeld.values())
  for (const shape of shapes.filter(isHeld)) {
    const outcome = await outcomesOfHeld.get(shape)!
    assertOneAnswer(outcome, /^$|^HTTP\/1\.1 4\d\d /, shape.name)
    assert.ok(outcome.isClosed, `never cut off: ${shape.name}`)
  }
  await assertNothingRan()
}

describe('a request whose end cannot be told', () => {
  it(`is answered 400, 505 or not at all, and closed: ${AMBIGUOUS.length} shapes`, async () => {
    for (const shape of AMBIGUOUS.filter((shape) => !isHeld(shape) && !isMisread(shape))) {
      await Promise.all([
        ...FRONTS.map((front) => sendAndClose(shape, front, 'at once', /^$|^HTTP\/1\.1 (400|505) /)),
        sendAndClose(shape, FRONTS[0], 'head first', /^$|^HTTP\/1\.1 (400|505) /),
      ])
    }
    await assertNothingRan()
  })

  // The README says so: the library (uWebSockets.js 20.51) does not show us what it made of these.
  it('is the last of its connection where the library misreads it', async () => {
    for (const shape of AMBIGUOUS.filter(isMisread))
      await sendEachWay(shape, READERS, WAYS, /^$|^HTTP\/1\.1 (200|4\d\d) /)
    await assertNothingRan()
  })

  it('runs nothing behind it where the library goes on waiting, and is cut off', async () => {
    await assertHeldAreCutOff(AMBIGUOUS)
  })
})

describe('a chunked body that is written wrongly', () => {
  it(`is the last of its connection, which is closed: ${BAD_CHUNKS.length} shapes`, async () => {
    const shapes = BAD_CHUNKS.filter((shape) => !isHeld(shape) && !isValid(shape))
    for (const shape of shapes) await sendEachWay(shape, READERS, WAYS, /^$|^HTTP\/1\.1 (200|4\d\d|505) /)
    // Nobody reads the body here: the answer does not wait for it, and the connection may go on.
    const sent = await Promise.all(shapes.map((shape) => send(shape, 'POST /nowhere', 'at once')))
    for (const [n, outcome] of sent.entries())
      assertOneAnswer(outcome, /^$|^HTTP\/1\.1 (404|400|505) /, shapes[n]!.name)
    await assertNothingRan()
  })

  it('runs nothing behind it where the library goes on waiting, and is cut off', async () => {
    await assertHeldAreCutOff(BAD_CHUNKS)
  })

  const valid = BAD_CHUNKS.filter(isValid)
  it(`has nothing run behind it that came with it where the library finds it valid: ${valid.length} shapes`, async () => {
    for (const shape of valid) await sendEachWay(shape, READERS, ['at once', 'head first'], /^HTTP\/1\.1 200 /)
    await assertNothingRan()
  })
})

describe('a valid request', () => {
  it('of any kind has nothing run behind it that came with it', async () => {
    const nothing: Shape = { name: 'a valid request', head: '' }
    const paths = ['/p/echo', '/w/echo', '/p/feed', '/w/feed', '/p/say-back', '/nowhere', '/p/echo/%zz', '/p/me']
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE', 'POST', 'PATCH', 'TRACE', 'BREW'])
      await Promise.all(paths.map((path) => sendAndClose(nothing, `${method} ${path}`, 'at once', /^/)))
    await assertNothingRan()
  })
})
