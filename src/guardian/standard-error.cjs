// The way of a runtime's standard error: on to who reads it, and its end into the crash report.
const { write } = require('node:fs')

const STDERR_FD = 2
/** What the next crash report has of the standard error, bytes. */
const TAIL_BYTES = 16_384
/** What waits for a reader who does not read, bytes. What comes on top is left out, and that is said. */
const BACKLOG_BYTES = 1_048_576
/** A terminal or a pipe that takes nothing now is tried again after this long. */
const RETRY_MS = 50

/** Hands on the standard error of each runtime, and keeps its end. It always reads, so no runtime waits for who reads it in the end. */
class StandardError {
  #backlog = []
  #backlogBytes = 0
  #leftOutBytes = 0
  #isWriting = false
  #onIdle = []

  /**
   * @param stream the standard error of a runtime
   * @returns gives its last lines, oldest first
   */
  follow(stream) {
    let tail = Buffer.alloc(0)
    stream.on('data', (bytes) => {
      tail = Buffer.concat([tail, bytes]).subarray(-TAIL_BYTES)
      this.write(bytes)
    })
    return () => tail.toString('utf8')
  }

  write(bytes) {
    if (this.#backlogBytes + bytes.length > BACKLOG_BYTES) {
      this.#leftOutBytes += bytes.length
      return
    }
    this.#push(bytes)
    this.#next()
  }

  /** A line of the guardian itself. */
  say(line) {
    this.write(Buffer.from(`heddle guardian: ${line}\n`))
  }

  /** Calls back when everything is written, or after some time. */
  flush(withinMs, done) {
    if (!this.#isWriting) return done()
    const timer = setTimeout(finish, withinMs)
    this.#onIdle.push(finish)
    function finish() {
      clearTimeout(timer)
      done()
    }
  }

  #push(bytes) {
    this.#backlog.push(bytes)
    this.#backlogBytes += bytes.length
  }

  /** One write at a time, off this thread: it may wait for a reader as long as it likes. */
  #next() {
    if (this.#isWriting) return
    const bytes = this.#backlog[0]
    if (bytes === undefined) {
      for (const done of this.#onIdle.splice(0)) done()
      return
    }
    this.#isWriting = true
    write(STDERR_FD, bytes, (error, written) => {
      this.#isWriting = false
      if (error?.code === 'EAGAIN') {
        this.#isWriting = true
        setTimeout(() => {
          this.#isWriting = false
          this.#next()
        }, RETRY_MS)
        return
      }
      // A reader that is gone reads nothing more: what cannot be written is dropped.
      this.#backlog.shift()
      this.#backlogBytes -= bytes.length
      if (error === null && written < bytes.length) {
        this.#backlog.unshift(bytes.subarray(written))
        this.#backlogBytes += bytes.length - written
      } else if (this.#leftOutBytes > 0 && this.#backlog.length === 0) {
        const leftOut = this.#leftOutBytes
        this.#leftOutBytes = 0
        this.#push(
          Buffer.from(`heddle guardian: ${leftOut} bytes of standard error are left out, for nobody read them\n`),
        )
      }
      this.#next()
    })
  }
}

module.exports = { StandardError }
