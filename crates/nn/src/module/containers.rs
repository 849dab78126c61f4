//! Containers of modules: `Vec`, arrays, tuples, `Option`, `Box`.

use super::{Module, Visitor, VisitorMut};

/// Calls `f` with the name of item `i` of a container: its number.
pub fn visit_item_name<R>(i: usize, f: impl FnOnce(&str) -> R) -> R {
    const NAMES: [&str; 32] = [
        "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19",
        "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31",
    ];
    match NAMES.get(i) {
        Some(name) => f(name),
        None => f(&i.to_string()),
    }
}

macro_rules! items {
    () => {
        fn visit<'a>(&'a self, visitor: &mut dyn Visitor<'a>) {
            for (i, item) in self.iter().enumerate() {
                visit_item_name(i, |name| item.visit_as(name, visitor));
            }
        }

        fn visit_mut<'a>(&'a mut self, visitor: &mut dyn VisitorMut<'a>) {
            for (i, item) in self.iter_mut().enumerate() {
                visit_item_name(i, |name| item.visit_as_mut(name, visitor));
            }
        }
    };
}

impl<M: Module> Module for Vec<M> {
    fn describe(&self) -> String {
        String::new()
    }

    items!();
}

impl<M: Module, const N: usize> Module for [M; N] {
    fn describe(&self) -> String {
        String::new()
    }

    items!();
}

impl<M: Module> Module for Option<M> {
    fn describe(&self) -> String {
        self.as_ref().map_or_else(|| "None".to_string(), M::describe)
    }

    fn visit<'a>(&'a self, visitor: &mut dyn Visitor<'a>) {
        if let Some(module) = self {
            module.visit(visitor);
        }
    }

    fn visit_mut<'a>(&'a mut self, visitor: &mut dyn VisitorMut<'a>) {
        if let Some(module) = self {
            module.visit_mut(visitor);
        }
    }

    fn visit_as<'a>(&'a self, name: &str, visitor: &mut dyn Visitor<'a>) {
        if let Some(module) = self {
            module.visit_as(name, visitor);
        }
    }

    fn visit_as_mut<'a>(&'a mut self, name: &str, visitor: &mut dyn VisitorMut<'a>) {
        if let Some(module) = self {
            module.visit_as_mut(name, visitor);
        }
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn describe(&self) -> String {
        (**self).describe()
    }

    fn visit<'a>(&'a self, visitor: &mut dyn Visitor<'a>) {
        (**self).visit(visitor);
    }

    fn visit_mut<'a>(&'a mut self, visitor: &mut dyn VisitorMut<'a>) {
        (**self).visit_mut(visitor);
    }

    fn visit_as<'a>(&'a self, name: &str, visitor: &mut dyn Visitor<'a>) {
        (**self).visit_as(name, visitor);
    }

    fn visit_as_mut<'a>(&'a mut self, name: &str, visitor: &mut dyn VisitorMut<'a>) {
        (**self).visit_as_mut(name, visitor);
    }
}

macro_rules! tuples {
    ($($($t:ident $i:tt)*;)*) => { $(
        impl<$($t: Module),*> Module for ($($t,)*) {
            fn describe(&self) -> String {
                String::new()
            }

            fn visit<'a>(&'a self, _visitor: &mut dyn Visitor<'a>) {
                $(self.$i.visit_as(stringify!($i), _visitor);)*
            }

            fn visit_mut<'a>(&'a mut self, _visitor: &mut dyn VisitorMut<'a>) {
                $(self.$i.visit_as_mut(stringify!($i), _visitor);)*
            }
        }
    )* };
}

tuples! {
    ;
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11;
}
