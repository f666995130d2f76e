"""A way of tuning, cross-validated by scikit-learn."""

from sklearn.model_selection import cross_val_score

from totune import TotuneClassifier

texts = [f"{how} film, number {n}" for n in range(30) for how in ("A joyful", "A dull")]
y = ["good", "bad"] * 30
if __name__ == "__main__":
    scores = cross_val_score(TotuneClassifier("last-2"), texts, y, cv=3)
    print(f"accuracy {scores.mean():.2f}")
