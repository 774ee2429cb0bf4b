import { TopicReader, type TopicReaderOptions } from './topic-reader.ts'

/** A reader that has stopped because there was no room begins again when there is room for so many entries. */
const ROOM_MIN = 128

export interface ReaderOptions extends Omit<TopicReaderOptions, 'blocked' | 'isStopping' | 'stopped'> {
  /** This thread has as many pending entries as it may and sleeps though there may be more; or it has room again and reads on. */
  full: (event: string, isFull: boolean) => void
}

/** Reads the streams of one thread's subscribers: each when the thread is woken for it, as long as there is room. */
export class StreamReader {
  readonly #options: ReaderOptions
  readonly #topicOptions: TopicReaderOptions
  readonly #topics = new Map<string, TopicReader>()
  /** Topics whose reader has found no room. */
  readonly #blocked = new Set<TopicReader>()
  #isStopping = false
  readonly #stopWaiters: (() => void)[] = []

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#topicOptions = {
      ...options,
      blocked: (topic) => this.#block(topic),
      isStopping: () => this.#isStopping,
      stopped: () => this.#lookWhetherStopped(),
    }
  }

  /** There is something in the stream of this event. */
  wake(event: string): void {
    const { groups, idle } = this.#options
    if (this.#isStopping || groups.consumer === '') return
    const topic = this.#topicOf(event)
    if (topic === null) idle(event, '0-0')
    else topic.wake()
  }

  /** @returns null when nobody here has ever subscribed to it */
  #topicOf(event: string): TopicReader | null {
    let topic = this.#topics.get(event)
    if (topic === undefined) {
      const groups = this.#options.groups.of(event)
      if (groups === undefined) return null
      topic = new TopicReader(event, groups, this.#topicOptions)
      this.#topics.set(event, topic)
    }
    return topic
  }

  /** Other threads read the topic until there is room here. */
  #block(topic: TopicReader): void {
    this.#blocked.add(topic)
    this.#options.full(topic.event, true)
  }

  /** An entry of this thread is no longer pending. */
  settled(): void {
    if (this.#isStopping) return this.#lookWhetherStopped()
    if (this.#blocked.size === 0 || this.#options.pending.room < ROOM_MIN) return
    const blocked = [...this.#blocked]
    this.#blocked.clear()
    for (const topic of blocked) {
      this.#options.full(topic.event, false)
      topic.wake()
    }
  }

  /** Reads nothing more. Resolves when all pending entries are answered and acknowledged. */
  stop(): Promise<void> {
    this.#isStopping = true
    this.#options.pending.stop()
    return new Promise((resolve) => {
      this.#stopWaiters.push(resolve)
      this.#lookWhetherStopped()
    })
  }

  #lookWhetherStopped(): void {
    if (this.#options.pending.size > 0) return
    for (const topic of this.#topics.values()) if (topic.isReading) return
    for (const resolve of this.#stopWaiters.splice(0)) resolve()
  }
}
