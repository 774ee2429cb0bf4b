import type { Tool, ToolRuntime } from '{{contract}}'

/** The tool that plugins get as `{{name}}`. */
export interface {{Contract}} {
  /** @throws when the server has nothing for the key, or does not answer */
  read(key: string): Promise<string>
}

declare module 'heddle' {
  interface Tools {
    {{name}}: {{Contract}}
  }
}

const TIMEOUT_MS = 5000

/** One instance per thread. To open and close connections, implement `boot` and `stop`. */
export default class {{Contract}}Tool implements Tool, {{Contract}} {
  readonly name = '{{name}}'
  readonly #url: string | undefined

  constructor(runtime: ToolRuntime) {
    this.#url = runtime.env('{{variable}}')
  }

  async read(key: string): Promise<string> {
    const response = await this.#fetch(`/${encodeURIComponent(key)}`)
    if (!response.ok) throw new Error(`{{name}} answered ${response.status} for ${key}`)
    return response.text()
  }

  /** Called every HEALTH_CHECK_INTERVAL seconds. Healthy while no server is configured, since nothing can use it then. */
  async healthCheck(): Promise<boolean> {
    return this.#url === undefined || (await this.#fetch('/')).status < 500
  }

  async #fetch(path: string): Promise<Response> {
    if (this.#url === undefined) throw new Error('{{variable}} is not set')
    return fetch(this.#url + path, { signal: AbortSignal.timeout(TIMEOUT_MS) })
  }
}
