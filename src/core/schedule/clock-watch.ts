// Notices that the system's clock was set, or that the machine was suspended.
import { appMs } from './clock.ts'

/** How often the clock is looked at, milliseconds. */
const LOOK_MS = 1000
/** Less within one look is the correction of a clock that is kept right, milliseconds. */
const JUMP_MS = 1000

/** Compares the wall clock with the one that nobody sets. */
export class ClockWatch {
  readonly #timer: NodeJS.Timeout
  #aheadMs = Date.now() - appMs()

  /** @param onJump told by how much the wall clock has gone ahead; negative: back */
  constructor(onJump: (jumpMs: number) => void) {
    this.#timer = setInterval(() => {
      const aheadMs = Date.now() - appMs()
      const jumpMs = aheadMs - this.#aheadMs
      this.#aheadMs = aheadMs
      if (Math.abs(jumpMs) >= JUMP_MS) onJump(jumpMs)
    }, LOOK_MS).unref()
  }

  end(): void {
    clearInterval(this.#timer)
  }
}

const UNITS = [
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
] as const

/** What has happened, for the log. */
export function jumpText(jumpMs: number): string {
  const ms = Math.abs(jumpMs)
  const [unitMs, unit] = UNITS.find(([each]) => ms >= each) ?? UNITS[2]
  const much = `${Number((ms / unitMs).toFixed(1))} ${unit}`
  if (jumpMs < 0) return `The system's clock was set back by ${much}`
  return `The system's clock was set ahead by ${much}, or the machine was suspended`
}
