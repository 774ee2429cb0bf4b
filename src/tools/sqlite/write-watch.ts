// Notices that writes fail, and that they succeed again.
import type { ToolRuntime } from '../../contracts/tool.ts'
import { codeOf, messageOf } from '../../core/errors/description.ts'
import type { WriteFault, WriteFaultKind } from '../../transport/memory/words.ts'
import { type DatabaseFile, REPLACED, RESERVE_BYTES } from './database-file.ts'
import { toDbError } from './failure.ts'

/** Milliseconds between two looks at the file, and between two attempts while writes fail. */
const LOOK_MS = 1000

export const FAULT_TEXTS: Record<Exclude<WriteFaultKind, 'none'>, string> = {
  full: 'the disk is full',
  reserve: `the disk is full: only single DELETE statements are taken until it has ${RESERVE_BYTES / 1_048_576} MiB of room`,
  failed: 'writes to the database file fail',
  locked: 'something has kept the write lock of the database for too long',
  replaced: REPLACED,
}

/** In the primary: watches that the database takes writes, and says so when it does not. */
export class WriteWatch {
  readonly #file: DatabaseFile
  readonly #fault: WriteFault
  readonly #write: () => Promise<void>
  readonly #log: ToolRuntime['log']
  #timer: NodeJS.Timeout | undefined
  #isTrying = false
  #hasReserved = false
  #logged: WriteFaultKind = 'none'
  #detail = ''

  /** @param write stores something in the file, and rejects when it cannot */
  constructor(file: DatabaseFile, fault: WriteFault, write: () => Promise<void>, log: ToolRuntime['log']) {
    this.#file = file
    this.#fault = fault
    this.#write = write
    this.#log = log
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#look(), LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Why the process should get no requests; null while writes succeed. */
  get reason(): string | null {
    const { kind } = this.#fault
    if (kind === 'none') return null
    return this.#detail === '' ? FAULT_TEXTS[kind] : `${FAULT_TEXTS[kind]} (${this.#detail})`
  }

  /** Writes, and remembers how that went. False: writes fail. */
  async check(): Promise<boolean> {
    if (!this.#file.isOpenedOne()) return this.#note('replaced', '')
    try {
      await this.#write()
    } catch (thrown) {
      const error = toDbError(thrown)
      const kind = faultOf(error)
      // The reserve is still given away.
      if (kind === 'full' && this.#fault.kind === 'reserve') return this.#note('reserve', '')
      return this.#note(kind === 'none' ? 'failed' : kind, messageOf(error))
    }
    // A small write may find room where the next one does not.
    const { kind } = this.#fault
    if ((kind === 'full' || kind === 'reserve') && !this.#tryReserve()) return this.#note(kind, '')
    return this.#note('none', '')
  }

  async #look(): Promise<void> {
    if (this.#isTrying) return
    // Not at the start, which should be quick.
    if (!this.#hasReserved) this.#hasReserved = this.#tryReserve()
    if (this.#fault.kind === 'none' && this.#file.isOpenedOne()) return
    this.#isTrying = true
    await this.check()
    this.#isTrying = false
  }

  #note(kind: WriteFaultKind, detail: string): boolean {
    this.#fault.kind = kind
    this.#detail = detail
    if (kind !== this.#logged) {
      if (kind === 'none') this.#log('INFO', 'The database takes writes again')
      else this.#log('ERROR', `Not ready: ${this.reason}`)
    }
    this.#logged = kind
    return kind === 'none'
  }

  #tryReserve(): boolean {
    try {
      this.#file.keepReserve()
      return true
    } catch {
      // There is no room for it, which is what it is asked for.
      return false
    }
  }
}

/** What a failed write says about all writes; `none` when it was the fault of the statement. */
export function faultOf(thrown: unknown): WriteFaultKind {
  const { cause, kind, message } = toDbError(thrown)
  if (message === REPLACED) return 'replaced'
  const code = codeOf(cause) ?? ''
  if (code === 'SQLITE_FULL') return 'full'
  if (/^SQLITE_(?:IOERR|READONLY|CANTOPEN|CORRUPT|NOTADB)/.test(code)) return 'failed'
  return kind === 'timeout' ? 'locked' : 'none'
}
