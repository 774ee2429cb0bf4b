import { Plugin, type Tools } from '#heddle'
import { addTargetRoutes } from '../routes.ts'

export default class AimAtPrimary extends Plugin {
  static override thread = 'primary' as const
  readonly #http
  readonly #auth

  constructor({ http, auth }: Tools) {
    super()
    this.#http = http
    this.#auth = auth
  }

  override onBoot(): void {
    addTargetRoutes({ http: this.#http, auth: this.#auth }, '/p')
  }
}
