/** What strikes while clients write, and in which order. */
import type { ChaosArguments } from './arguments.ts'

/** A whole number from 0 up to, not including, `below`. */
export type Random = (below: number) => number

/**
 * What ends with `--kill-process`.
 * - `runtime`: SIGKILL, and the guardian starts it again.
 * - `abort`: V8 ends the process for a line of a handler.
 * - `boot`: as `runtime`, and its successor too, while it starts.
 * - `guardian`: SIGKILL of the guardian alone. The runtime notices and ends; then somebody starts both.
 * - `plug`: SIGKILL of both at once.
 * - `lane`: a handler ends its thread.
 * - `stop`: SIGTERM, and somebody starts it again.
 * - `server`: that of the events, as in a power cut. It is away for some seconds.
 */
const KILLS = ['runtime', 'abort', 'boot', 'guardian', 'plug', 'lane', 'stop'] as const
/** Handlers, by what they do to their lane; `hang` does nothing to it. */
export const HANDLERS = {
  timer: `setTimeout(() => { throw new Error('thrown by a timer') }, 1)
      await new Promise(() => {})`,
  rejection: `void Promise.reject(new Error('rejected by nobody'))
      await new Promise(() => {})`,
  exit: 'process.exit(41)',
  loop: 'for (;;);',
  heap: 'const kept = []; for (let n = 0; ; n++) kept.push({ n, text: String(n), list: [n] })',
  // 384 MiB that are not on the JavaScript heap.
  buffers: `const kept = []
      for (let n = 0; n < 96; n++) {
        kept.push(Buffer.alloc(4 << 20, n))
        if (n % 8 === 0) await pause(1)
      }
      await pause(1000)`,
  // With the write lock of the database in hand.
  transaction: `await db.transaction(async (tx) => {
        await tx.execute("INSERT INTO torn (id) VALUES ('a row')")
        await pause(20)
        process.exit(42)
      })`,
  hang: 'await new Promise(() => {})',
} as const
/** What strikes else: `poison` is an event that ends each lane that has it, `pause` halts the process for a second, `reload` is SIGHUP. */
const TROUBLES = [...(Object.keys(HANDLERS) as (keyof typeof HANDLERS)[]), 'poison', 'pause', 'reload'] as const

export type KillKind = (typeof KILLS)[number] | 'server'
export type TroubleKind = (typeof TROUBLES)[number]

export interface Kill {
  readonly kind: KillKind
  /** Writes that are acknowledged since the last one before it comes: each process has done something. */
  readonly afterWrites: number
  /** And so long after that, milliseconds. */
  readonly delayMs: number
}

export interface Trouble {
  readonly kind: TroubleKind
  /** Since the one before, milliseconds. */
  readonly pauseMs: number
}

const MAX_WRITES = 150
const MAX_DELAY_MS = 40

/** The kills of a run, without an end. */
export function* killsOf(random: Random, log: ChaosArguments['log']): Generator<Kill> {
  for (const kind of shuffled<KillKind>(random, log === 'sqlite' ? KILLS : [...KILLS, 'server']))
    yield { kind, afterWrites: 1 + random(MAX_WRITES), delayMs: random(MAX_DELAY_MS) }
}

/** The troubles of lanes in a run, without an end. @param gapMs between two of them, on average */
export function* troublesOf(random: Random, gapMs: number): Generator<Trouble> {
  for (const kind of shuffled(random, TROUBLES)) yield { kind, pauseMs: random(2 * gapMs) }
}

/** Each kind comes equally often: a bag is emptied before it is filled again. */
function* shuffled<Kind>(random: Random, kinds: readonly Kind[]): Generator<Kind> {
  for (;;) {
    const bag = [...kinds]
    while (bag.length > 0) yield bag.splice(random(bag.length), 1)[0]!
  }
}
