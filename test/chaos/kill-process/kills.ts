import type { Random } from '../schedule.ts'

/**
 * What ends.
 * - `runtime`: SIGKILL, and the guardian starts it again.
 * - `abort`: V8 ends the process for a line of a handler.
 * - `boot`: as `runtime`, and its successor too, while it starts.
 * - `guardian`: SIGKILL of the guardian alone. The runtime notices and ends; then somebody starts both.
 * - `plug`: SIGKILL of both at once.
 * - `lane`: a handler ends its thread.
 * - `stop`: SIGTERM, and somebody starts it again.
 * - `server`: that of the events, as in a power cut. It is away for some seconds.
 */
const PROCESS_KILLS = ['runtime', 'abort', 'boot', 'guardian', 'plug', 'lane', 'stop'] as const
export type KillKind = (typeof PROCESS_KILLS)[number] | 'server'

/** Those that there are with each log. */
export const KILLS = {
  sqlite: PROCESS_KILLS,
  postgres: [...PROCESS_KILLS, 'server'],
  redis: [...PROCESS_KILLS, 'server'],
} as const satisfies Record<string, readonly KillKind[]>

export interface Kill {
  readonly kind: KillKind
  /** Writes that are acknowledged since the last one before it comes: each process has done something. */
  readonly afterWrites: number
  /** And so long after that, milliseconds. */
  readonly delayMs: number
}

const MAX_WRITES = 150
const MAX_DELAY_MS = 40

/** The kills of a run, without an end. Each kind comes equally often: a bag is emptied before it is filled again. */
export function* killsOf(random: Random, kinds: readonly KillKind[]): Generator<Kill, never> {
  for (;;) {
    const bag = [...kinds]
    while (bag.length > 0) {
      const kind = bag.splice(random(bag.length), 1)[0]!
      yield { kind, afterWrites: 1 + random(MAX_WRITES), delayMs: random(MAX_DELAY_MS) }
    }
  }
}
