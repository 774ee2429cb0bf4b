import { Plugin, type Tools } from '#heddle'
import { addTargetRoutes } from '../routes.ts'

export default class AimAtLane extends Plugin {
  readonly #tools: Pick<Tools, 'auth' | 'event_bus' | 'http' | 'state'>

  constructor({ auth, event_bus, http, state }: Tools) {
    super()
    this.#tools = { auth, event_bus, http, state }
  }

  override onBoot(): void {
    addTargetRoutes(this.#tools, '/w')
  }
}
