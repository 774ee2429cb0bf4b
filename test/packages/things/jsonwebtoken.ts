import jwt from 'jsonwebtoken'

export default () => () => jwt.verify(jwt.sign({ sub: 'ada' }, 'a secret'), 'a secret')
