const KEY = 'heddle-docs-token'

/** The token for operations that require one. It is kept until the tab is closed. */
export class Token {
  #input
  #clear

  constructor(form, input, clear) {
    this.#input = input
    this.#clear = clear
    input.value = sessionStorage.getItem(KEY) ?? ''
    input.addEventListener('input', () => this.#keep())
    clear.addEventListener('click', () => {
      this.use('')
      input.focus()
    })
    form.addEventListener('submit', (event) => event.preventDefault())
    this.#keep()
  }

  get value() {
    return this.#input.value.trim()
  }

  use(value) {
    this.#input.value = value
    this.#keep()
    if (value !== '') this.#flash()
  }

  /** Highlights the token field. The request is sent all the same, and shows its 401. */
  hint() {
    this.#flash()
  }

  #flash() {
    this.#input.classList.remove('flash')
    requestAnimationFrame(() => this.#input.classList.add('flash'))
  }

  #keep() {
    if (this.value === '') sessionStorage.removeItem(KEY)
    else sessionStorage.setItem(KEY, this.value)
    this.#clear.hidden = this.value === ''
  }
}
