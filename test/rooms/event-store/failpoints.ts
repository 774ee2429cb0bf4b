import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../support/folder.ts'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

/** The domains of which the handlers stop where a test wants. */
export const DOMAINS_DIR = fileURLToPath(new URL('../../fixtures/failpoints', import.meta.url))

/** Files by which the handlers and a test tell each other how far they are. */
export class Points {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  static async make(t: TestContext): Promise<Points> {
    const folder = temporaryFolder(t)
    return new Points(folder)
  }

  /** @returns the status, and the id of an event that was taken */
  async publish(heddle: Heddle, name: string, point: object = {}, options: object = {}) {
    const { status, body } = await this.#send(heddle, '/points', {
      point: { name, folder: this.folder, ...point },
      options,
    })
    return { status, id: body.id as string }
  }

  /** Sends a request that is not answered before the process is gone. */
  send(heddle: Heddle, path: string, body: object): void {
    this.#send(heddle, path, { folder: this.folder, ...body }).catch(() => {})
  }

  #send(heddle: Heddle, path: string, body: object) {
    return heddle.post(path, body)
  }

  async letGo(...names: string[]): Promise<void> {
    for (const name of names) await writeFile(join(this.folder, `${name}.go`), '')
  }

  async told(...marks: string[]): Promise<void> {
    for (const mark of marks) await until(() => existsSync(join(this.folder, mark)), mark)
  }

  isTold(mark: string): boolean {
    return existsSync(join(this.folder, mark))
  }
}
