import { Plugin, type Tools } from '#heddle'
import { addTargetRoutes } from '../routes.ts'

export default class AimAtPrimary extends Plugin {
  static override thread = 'primary' as const
  readonly #tools: Pick<Tools, 'auth' | 'event_bus' | 'http' | 'state'>

  constructor({ auth, event_bus, http, state }: Tools) {
    super()
    this.#tools = { auth, event_bus, http, state }
  }

  override onBoot(): void {
    addTargetRoutes(this.#tools, '/p')
  }
}
