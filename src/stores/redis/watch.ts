// What watches one connection: a server that has stopped answering is noticed, and a loss is said in one line.
import type { LogLevel } from '../../contracts/logger.ts'

/** Milliseconds between two log lines about one loss of a connection. */
const REMINDER_MS = 60_000
/** A connection that is lost more often than this is logged once in this time. Milliseconds. */
const FLAP_MS = 5000

export type WriteLog = (level: LogLevel, message: string, fields?: Record<string, unknown>) => void

/** Logs one line when a connection is lost, one when it is back, and a reminder now and then, but not one for each attempt. */
export class ConnectionLog {
  readonly #write: WriteLog
  readonly #name: string
  /** Null while the connection is up. */
  #downSinceMs: number | null = null
  #toldMs = Number.NEGATIVE_INFINITY
  #told = ''
  /** The present loss was logged, so its end must be logged too. */
  #isTold = false
  /** Losses that were not logged. */
  #untold = 0

  constructor(write: WriteLog, name: string) {
    this.#write = write
    this.#name = name
  }

  /** Call it for every failure, also for one of an attempt to reconnect. */
  down(message: string): void {
    const nowMs = performance.now()
    const isLoss = this.#downSinceMs === null
    this.#downSinceMs ??= nowMs
    const silentMs = nowMs - this.#toldMs
    const isDue = isLoss || !this.#isTold || message !== this.#told ? silentMs >= FLAP_MS : silentMs >= REMINDER_MS
    if (!isDue) {
      if (isLoss) this.#untold++
      return
    }
    const fields: Record<string, unknown> = { connection: this.#name }
    if (!isLoss) fields.down_s = Math.round((nowMs - this.#downSinceMs) / 1000)
    if (this.#untold > 0) fields.losses_not_logged = this.#untold
    this.#write('WARNING', `${message}. Trying again until it works.`, fields)
    this.#untold = 0
    this.#toldMs = nowMs
    this.#told = message
    this.#isTold = true
  }

  up(place: string): void {
    if (this.#downSinceMs === null) return
    const down_s = Math.round((performance.now() - this.#downSinceMs) / 1000)
    this.#downSinceMs = null
    if (!this.#isTold) return
    this.#isTold = false
    this.#write('INFO', `${place} answers again`, { connection: this.#name, down_s })
  }
}

/** The age of a command is measured in so many steps: it is known to an eighth. */
const STEPS = 8
const STEP_MAX_MS = 250

interface WatchOptions {
  /** How long a command may stay without an answer. */
  timeoutMs: number
  /** How long a new connection may stay silent before it is ready. */
  connectTimeoutMs: number
  bytesRead(): number
  onTimeout(): void
  onSilence(): void
}

type Phase = 'closed' | 'greeting' | 'ready'

/**
 * Notices a server that has stopped answering. There is one timer for the whole connection, and none while no reply is awaited.
 * Replies come in the order of the commands, so counts are enough: at each step, the commands sent some steps ago must have been
 * answered. Time is counted in steps: a thread that was itself blocked sees one step, and does not blame the server.
 */
export class Watch {
  readonly #options: WatchOptions
  readonly #stepMs: number
  #phase: Phase = 'closed'
  #timer: NodeJS.Timeout | undefined
  #sent = 0
  #answered = 0
  /** How many commands had been sent at each of the last steps, oldest first. */
  #marks: number[] = []
  #silentSteps = 0
  /** The counts at the last step. */
  #bytesRead = 0
  #answeredBefore = 0
  #onIdle: (() => void) | null = null

  constructor(options: WatchOptions) {
    this.#options = options
    this.#stepMs = Math.min(STEP_MAX_MS, Math.ceil(options.timeoutMs / STEPS))
  }

  get inFlight(): number {
    return this.#sent - this.#answered
  }

  sent(): void {
    this.#sent++
    if (this.#timer === undefined) this.#start()
  }

  /** Call it once for each command that was sent, also for one that was rejected. */
  answered(): void {
    if (++this.#answered === this.#sent) this.#onIdle?.()
  }

  connected(): void {
    this.#phase = 'greeting'
    this.#silentSteps = 0
    this.#bytesRead = 0
    this.#start()
  }

  ready(): void {
    this.#phase = 'ready'
    this.#marks = []
  }

  closed(): void {
    this.#phase = 'closed'
    this.#stop()
  }

  /** Resolves when no reply is awaited, at the latest after `limitMs`. */
  async idle(limitMs: number): Promise<void> {
    if (this.inFlight === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs)
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #start(): void {
    this.#timer ??= setInterval(() => this.#step(), this.#stepMs).unref()
  }

  #stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#marks = []
  }

  #step(): void {
    if (this.#phase === 'greeting') return this.#stepOfGreeting()
    if (this.inFlight === 0) return this.#stop()
    this.#marks.push(this.#sent)
    const isComingIn = this.#isReplyComingIn()
    if (this.#marks.length * this.#stepMs <= this.#options.timeoutMs) return
    if (this.#answered < this.#marks.shift()! && !isComingIn) this.#options.onTimeout()
  }

  /** A reply of many megabytes may take longer, as long as its bytes keep arriving. */
  #isReplyComingIn(): boolean {
    const bytesRead = this.#options.bytesRead()
    const isComingIn = bytesRead !== this.#bytesRead && this.#answered === this.#answeredBefore
    this.#bytesRead = bytesRead
    this.#answeredBefore = this.#answered
    return isComingIn
  }

  #stepOfGreeting(): void {
    const bytesRead = this.#options.bytesRead()
    this.#silentSteps = bytesRead === this.#bytesRead ? this.#silentSteps + 1 : 0
    this.#bytesRead = bytesRead
    if (this.#silentSteps * this.#stepMs >= this.#options.connectTimeoutMs) this.#options.onSilence()
  }
}
