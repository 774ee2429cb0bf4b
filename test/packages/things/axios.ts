import axios from 'axios'

export default (get: (name: string) => string) => {
  const url = get('TRIAL_HTTP')
  return async () => (await axios.get(`${url}/hello`)).data
}
