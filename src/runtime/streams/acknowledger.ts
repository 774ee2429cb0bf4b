import { isNoGroup } from './consumers.ts'
import { retryWhile } from './retry-while.ts'
import type { StreamCommands } from './stream-commands.ts'

/** Before an acknowledgement that failed is sent again, milliseconds. */
const RETRY_MS = 250

interface Batch {
  readonly stream: string
  readonly group: string
  ids: string[]
}

/** An acknowledgement waits so long for others and for the next read, so that they are sent together; milliseconds. */
const GATHER_MS = 2

/** Acknowledges entries: those of a short time in one command, which is sent again until the store has it. */
export class Acknowledger {
  readonly #commands: StreamCommands
  readonly #onConfirmed: (stream: string, group: string, ids: readonly string[]) => void
  readonly #batches = new Map<string, Map<string, Batch>>()
  /** Batches that are sent and not confirmed. */
  #sent: Batch[] = []
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Acknowledgements that are not confirmed yet. */
  open = 0

  constructor(
    commands: StreamCommands,
    onConfirmed: (stream: string, group: string, ids: readonly string[]) => void = () => {},
  ) {
    this.#commands = commands
    this.#onConfirmed = onConfirmed
  }

  add(stream: string, group: string, entryId: string): void {
    this.open++
    let groups = this.#batches.get(stream)
    if (groups === undefined) {
      groups = new Map()
      this.#batches.set(stream, groups)
    }
    const batch = groups.get(group)
    if (batch === undefined) groups.set(group, { stream, group, ids: [entryId] })
    else batch.ids.push(entryId)
    this.#timer ??= setTimeout(this.flush, GATHER_MS)
  }

  /** The entries of a group whose acknowledgement is not confirmed. */
  idsOf(stream: string, group: string): string[] {
    const gathered = this.#batches.get(stream)?.get(group)?.ids ?? []
    const sent = this.#sent.filter((batch) => batch.stream === stream && batch.group === group)
    return [...gathered, ...sent.flatMap(({ ids }) => ids)]
  }

  /** Sends the acknowledgements that have gathered: another command goes out now, or somebody waits for them. */
  readonly flush = (): void => {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const groups of this.#batches.values()) {
      for (const batch of groups.values()) {
        if (batch.ids.length === 0) continue
        void this.#sendBatch({ ...batch })
        batch.ids = []
      }
    }
  }

  async #sendBatch(batch: Batch): Promise<void> {
    const { stream, group, ids } = batch
    this.#sent.push(batch)
    await retryWhile(
      () => !this.#isClosed,
      () => this.#commands.acknowledge(stream, group, ids),
      // A group that has gone has nothing pending any more.
      { pauseMs: RETRY_MS, isFinal: isNoGroup },
    )
    this.#sent = this.#sent.filter((each) => each !== batch)
    this.open -= ids.length
    this.#onConfirmed(stream, group, ids)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#isClosed = true
  }
}
