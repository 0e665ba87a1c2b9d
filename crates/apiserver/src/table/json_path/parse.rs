//! Reads the text of a path, one character at a time, with bounds on its length and nesting.

use serde_json::Value;

use super::{Filter, Operand, Operator, ParseError, Step};

/// Longest accepted text. Real columns stay under 200 bytes.
const MAX_LENGTH: usize = 4096;
/// Deepest accepted nesting of filters within filters.
const MAX_DEPTH: usize = 8;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<Vec<Step>, ParseError> {
    if text.len() > MAX_LENGTH {
        return Err(ParseError { at: MAX_LENGTH, why: "the path is too long" });
    }
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(trimmed).trim();
    let mut parser = Parser { text: inner, at: 0, depth: 0 };
    if matches!(parser.peek(), Some('$' | '@')) {
        parser.bump();
    }
    let mut steps = Vec::new();
    if parser.peek().is_some_and(|next| !matches!(next, '.' | '[')) {
        steps.push(parser.field()?);
    }
    parser.steps(&mut steps)?;
    match parser.peek() {
        None => Ok(steps),
        Some(_) => Err(parser.error("unexpected character")),
    }
}

impl Parser<'_> {
    fn error(&self, why: &'static str) -> ParseError {
        ParseError { at: self.at, why }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take(&mut self, token: &str) -> bool {
        let taken = self.rest().starts_with(token);
        if taken {
            self.at += token.len();
        }
        taken
    }

    fn expect(&mut self, token: &str, why: &'static str) -> Result<(), ParseError> {
        if self.take(token) { Ok(()) } else { Err(self.error(why)) }
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.bump();
        }
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> Result<(), ParseError> {
        loop {
            if self.take("..") {
                steps.push(Step::Descend);
                if self.peek() != Some('[') {
                    steps.push(self.field()?);
                }
            } else if self.take(".") {
                match self.peek() {
                    // A lone dot is the value itself.
                    None if steps.is_empty() => return Ok(()),
                    Some('[') => {}
                    _ => steps.push(self.field()?),
                }
            } else if self.take("[") {
                steps.push(self.bracket()?);
            } else {
                return Ok(());
            }
        }
    }

    fn field(&mut self) -> Result<Step, ParseError> {
        let mut name = String::new();
        let mut escaped = false;
        while let Some(next) = self.peek() {
            match next {
                '\\' => {
                    self.bump();
                    escaped = true;
                    name.push(self.bump().ok_or_else(|| self.error("unfinished escape"))?);
                }
                '.' | ',' | '[' | ']' | '(' | ')' | '{' | '}' | '$' | '@' | '=' | '!' | '<' | '>' => break,
                space if space.is_whitespace() => break,
                plain => {
                    self.bump();
                    name.push(plain);
                }
            }
        }
        match name.as_str() {
            "" => Err(self.error("a field name is missing")),
            "*" if !escaped => Ok(Step::Wildcard),
            _ => Ok(Step::Field(name)),
        }
    }

    /// What stands between brackets, after the opening one.
    fn bracket(&mut self) -> Result<Step, ParseError> {
        self.skip_spaces();
        if self.take("?(") {
            let filter = self.filter()?;
            self.expect(")", "the filter is not closed by ')'")?;
            self.skip_spaces();
            self.expect("]", "the bracket is not closed")?;
            return Ok(Step::Filter(Box::new(filter)));
        }
        let mut alternatives = Vec::new();
        loop {
            self.skip_spaces();
            alternatives.push(self.selector()?);
            self.skip_spaces();
            if self.take("]") {
                break;
            }
            self.expect(",", "the bracket is not closed")?;
        }
        match alternatives.pop() {
            Some(only) if alternatives.is_empty() => Ok(only),
            Some(last) => {
                alternatives.push(last);
                Ok(Step::Union(alternatives))
            }
            None => Err(self.error("the bracket is empty")),
        }
    }

    fn selector(&mut self) -> Result<Step, ParseError> {
        match self.peek() {
            Some('*') => {
                self.bump();
                Ok(Step::Wildcard)
            }
            Some(quote @ ('\'' | '"')) => self.quoted(quote).map(Step::Field),
            Some('-' | ':' | '0'..='9') => self.position(),
            _ => Err(self.error("expected a list position, a quoted name, '*' or a filter")),
        }
    }

    fn position(&mut self) -> Result<Step, ParseError> {
        let start = self.integer()?;
        if !self.take(":") {
            return start.map(Step::Index).ok_or_else(|| self.error("expected a list position"));
        }
        let end = self.integer()?;
        let step = if self.take(":") { self.integer()? } else { None };
        match step {
            Some(step) if step <= 0 => Err(self.error("the step must be positive")),
            _ => Ok(Step::Slice { start, end, step }),
        }
    }

    fn integer(&mut self) -> Result<Option<i64>, ParseError> {
        let digits: usize = self
            .rest()
            .chars()
            .enumerate()
            .take_while(|(at, next)| is_digit(*next) || (*at == 0 && *next == '-'))
            .count();
        let (number, why) = (&self.rest()[..digits], "the list position is not a number");
        if number.is_empty() {
            return Ok(None);
        }
        let number = number.parse().map_err(|_| self.error(why))?;
        self.at += digits;
        Ok(Some(number))
    }

    fn quoted(&mut self, quote: char) -> Result<String, ParseError> {
        self.bump();
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return Err(self.error("the quote is not closed")),
                Some('\\') => match self.bump() {
                    None => return Err(self.error("unfinished escape")),
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some(escaped) => text.push(escaped),
                },
                Some(end) if end == quote => return Ok(text),
                Some(plain) => text.push(plain),
            }
        }
    }

    fn filter(&mut self) -> Result<Filter, ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("filters are nested too deeply"));
        }
        let left = self.operand()?;
        let filter = match self.operator() {
            Some(operator) => Filter::Compare(left, operator, self.operand()?),
            None => Filter::Exists(left),
        };
        self.depth -= 1;
        Ok(filter)
    }

    fn operator(&mut self) -> Option<Operator> {
        const OPERATORS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        OPERATORS.into_iter().find_map(|(token, operator)| self.take(token).then_some(operator))
    }

    fn operand(&mut self) -> Result<Operand, ParseError> {
        self.skip_spaces();
        let operand = match self.peek() {
            Some('@') => {
                self.bump();
                let mut steps = Vec::new();
                self.steps(&mut steps)?;
                Operand::Here(steps)
            }
            Some('$') => {
                self.bump();
                let mut steps = Vec::new();
                self.steps(&mut steps)?;
                Operand::Root(steps)
            }
            Some(quote @ ('\'' | '"')) => Operand::Literal(Value::String(self.quoted(quote)?)),
            _ => self.literal()?,
        };
        self.skip_spaces();
        Ok(operand)
    }

    fn literal(&mut self) -> Result<Operand, ParseError> {
        let end = self
            .rest()
            .find(|next: char| !(next.is_ascii_alphanumeric() || matches!(next, '-' | '+' | '.')))
            .unwrap_or(self.rest().len());
        let word = &self.rest()[..end];
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => match word.parse::<i64>() {
                Ok(whole) => Value::from(whole),
                Err(_) if word.starts_with(|first| is_digit(first) || first == '-') => {
                    let number: f64 = word.parse().map_err(|_| self.error("the number is malformed"))?;
                    Value::from(number)
                }
                Err(_) => return Err(self.error("expected '@', '$', a quoted text, a number, true or false")),
            },
        };
        self.at += end;
        Ok(Operand::Literal(value))
    }
}

fn is_digit(next: char) -> bool {
    next.is_ascii_digit()
}
