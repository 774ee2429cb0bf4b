import { Plugin, type Tools } from '#heddle'
import { addTargetRoutes } from '../routes.ts'

export default class AimAtLane extends Plugin {
  readonly #http
  readonly #auth

  constructor({ http, auth }: Tools) {
    super()
    this.#http = http
    this.#auth = auth
  }

  override onBoot(): void {
    addTargetRoutes({ http: this.#http, auth: this.#auth }, '/w')
  }
}
